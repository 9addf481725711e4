//go:build handles && linux

package handles

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
)

const (
	serverName = "s"
	// patience is how long an agent waits for a handle that somebody may release, and how long all agents may take.
	patience = time.Minute
	// stillness is how long nobody has minted or released a handle when agents give up, if no other one will release theirs.
	stillness = 2 * time.Second
	// grace is the time in which agents may come back after their platform was killed.
	grace = 1500 * time.Millisecond
)

// declaration declares the handles of the server.
func declaration(bound string) []mcpbridge.Handle {
	h := mcpbridge.Handle{
		Mint: openTool, Path: "id", Release: closeTool, List: listTool, Listed: `handle (\S+)`, Gone: errGone.Error(), Own: true, Max: capacity,
	}
	switch bound {
	case undeclared:
		return nil
	case learned:
		h.Max, h.Full = 0, "too many"
	}
	return []mcpbridge.Handle{h}
}

// report is what a platform says when its agents have ended.
type report struct {
	Served  int           `json:"served"`
	Starved int           `json:"starved"`
	Longest time.Duration `json:"longest"` // time for which an agent has waited
	// Missing are handles that an agent held, and that were no more when it used them.
	Missing int `json:"missing"`
	// Back are handles that agents of an earlier platform have found again.
	Back     int      `json:"back"`
	Minted   int      `json:"minted"` // events
	Released int      `json:"released"`
	Lost     int      `json:"lost"`
	Left     int      `json:"left"`
	Reasons  []string `json:"reasons,omitempty"` // of what was left
	// InBook is how many handles the supervisor has in its book at the end, but those that are left. Named is how many are left, and Unanswered how many
	// mints may run on, as far as it knows.
	InBook     int `json:"inBook"`
	Named      int `json:"named"`
	Unanswered int `json:"unanswered"`
}

// platform runs agents.
type platform struct {
	role   role
	client *supervisor.Client
	moved  atomic.Int64 // when a handle was minted or released last

	mu   sync.Mutex
	said report
}

// runPlatform runs the agents of a role, each in a scope of its own, writes a report, and waits for the end of its input.
func runPlatform(r role) error {
	store, err := resume.Open(r.File, resume.Config{})
	if err != nil {
		return err
	}
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}))
	p := &platform{role: r}
	system.EventStream.Subscribe(p.count)
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers: []mcpbridge.Server{{
			Name: serverName, URL: "http://" + r.Addr + "/mcp", NoStream: true, Headers: map[string]string{lifeHeader: strconv.Itoa(r.Life)},
			Handles: declaration(r.Bound),
		}},
		Store: store, HandleGrace: grace,
	})
	if err != nil {
		return err
	}
	p.client = sup.Client()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	p.move()
	var running sync.WaitGroup
	for n, started := 0, 0; started < r.Agents; n++ {
		if r.Life > 1 && n/4%4 == 0 {
			continue // this one does not come back
		}
		started++
		running.Go(func() { p.run(ctx, n) })
	}
	running.Wait()
	if err := p.close(); err != nil {
		return err
	}
	if err := json.NewEncoder(os.Stdout).Encode(p.said); err != nil {
		return err
	}
	inputEnds()
	if err := sup.Stop(context.Background()); err != nil && p.said.Unanswered == 0 {
		return err
	}
	system.Shutdown()
	if err := store.Close(); err != nil {
		return err
	}
	os.Exit(0)
	return nil
}

// count counts the events of handles.
func (p *platform) count(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *messages.HandleMinted:
		p.said.Minted++
	case *messages.HandleReleased:
		p.said.Released++
	case *messages.HandleLost:
		p.said.Lost++
	case *messages.HandleLeft:
		p.said.Left++
		p.said.Reasons = append(p.said.Reasons, e.Reason)
	}
}

// close waits until nothing is in the book but what is left, or it is clear that this will not be.
func (p *platform) close() error {
	for until := time.Now().Add(20 * time.Second); ; pause(50 * time.Millisecond) {
		snap, err := p.client.Inspect(context.Background())
		if err != nil {
			return err
		}
		inBook, named, unanswered := 0, 0, 0
		for _, server := range snap.Servers {
			for _, h := range server.Handles {
				inBook += h.Held + h.Releasing + h.Minting
				named += h.LeftCount
				unanswered += h.Unanswered
			}
		}
		if inBook == 0 || time.Now().After(until) {
			p.mu.Lock()
			defer p.mu.Unlock()
			p.said.InBook, p.said.Named, p.said.Unanswered = inBook, named, unanswered
			return nil
		}
	}
}

// move notes that a handle was minted or released.
func (p *platform) move() { p.moved.Store(time.Now().UnixNano()) }

// isStill reports whether no handle will be released any more.
func (p *platform) isStill() bool {
	return p.role.Bound == undeclared && time.Since(time.Unix(0, p.moved.Load())) > stillness
}

// by returns the name under which the server knows an agent.
func (p *platform) by(scope string) string { return fmt.Sprint(p.role.Life, ".", scope) }
