package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/debug"
)

// memberVar is the environment variable with the configuration of a member, as JSON. A process
// that has it is a member.
const memberVar = "MCPACTOR_DEMO_MEMBER"

// memberConfig is the configuration of a member.
type memberConfig struct {
	Name   string
	Listen string   // for other members
	Hosts  []string // where the members listen
	Server string   // the URL of the MCP server
	Store  string   // the URL of the store
	Page   string   // the address of the debug page, or empty
}

// memberRequest is a line that a member reads.
type memberRequest struct {
	ID    string `json:"id"`
	Op    string `json:"op"` // call, members, inspect, close or leave
	Scope string `json:"scope,omitempty"`
	Tool  string `json:"tool,omitempty"`
}

// memberAnswer is a line that a member writes: the first one when it has joined, and one for
// each request.
type memberAnswer struct {
	ID       string               `json:"id"`
	Result   *messages.ToolResult `json:"result,omitempty"`
	Failure  *messages.Failure    `json:"failure,omitempty"`
	Snapshot *messages.Snapshot   `json:"snapshot,omitempty"`
	Page     string               `json:"page,omitempty"` // the URL of the debug page
	Error    string               `json:"error,omitempty"`
}

const (
	// joinLimit bounds the time that a member takes to join, and lease is how long it may act
	// after others have confirmed that it is a member.
	joinLimit, lease = 20 * time.Second, 2 * time.Second
)

// runMember runs the member that a configuration describes, until it has left or until in ends.
func runMember(config string, in io.Reader, out io.Writer) error {
	var cfg memberConfig
	if err := json.Unmarshal([]byte(config), &cfg); err != nil {
		return err
	}
	signal.Ignore(os.Interrupt) // Ctrl-C is for the show, which ends its members
	var writing sync.Mutex
	lines := json.NewEncoder(out)
	answer := func(a memberAnswer) {
		writing.Lock()
		defer writing.Unlock()
		lines.Encode(a) //nolint:errcheck,errchkjson // without the show, stdin ends
	}
	m, err := cfg.join()
	if err != nil {
		answer(memberAnswer{Error: err.Error()})
		return err
	}
	joined := memberAnswer{}
	if cfg.Page != "" {
		if joined.Page, err = servePage(cfg.Page, m); err != nil {
			answer(memberAnswer{Error: err.Error()})
			return err
		}
	}
	answer(joined)
	requests := json.NewDecoder(in)
	var running sync.WaitGroup // requests
	for {
		var r memberRequest
		if err := requests.Decode(&r); err != nil {
			return nil // the show has ended, and expects no answer
		}
		if r.Op == "leave" {
			running.Wait() // a member that leaves refuses new calls of its own process
			answer(memberAnswer{ID: r.ID, Error: stopMember(m)})
			return nil
		}
		running.Go(func() { answer(r.run(m)) })
	}
}

// servePage serves the debug page of a member until the process ends, and returns its URL.
func servePage(addr string, m *cluster.Member) (url string, err error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return "", err
	}
	page := debug.New(m, debug.Config{Actions: l.Addr().(*net.TCPAddr).IP.IsLoopback()})
	go http.Serve(l, page) //nolint:errcheck // until the process ends
	return "http://" + l.Addr().String() + "/", nil
}

// join joins the cluster.
func (cfg *memberConfig) join() (*cluster.Member, error) {
	ctx, cancel := context.WithTimeout(context.Background(), joinLimit)
	defer cancel()
	return cluster.Start(ctx, actor.NewActorSystem(supervisor.WithSystemLogger(zerolog.Nop())), cluster.Config{
		Name: "demo", Member: cfg.Name, Listen: cfg.Listen, Lease: lease, Hosts: cfg.Hosts, RestartedHostsJoinAnew: true,
		Supervisor: supervisor.Config{
			Servers: []mcpbridge.Server{{Name: "web", URL: cfg.Server}}, Store: remoteStore(cfg.Store),
			Budget: 50, BackoffBase: 50 * time.Millisecond, BackoffMax: 500 * time.Millisecond,
			CallTimeout: callLimit, DrainTimeout: time.Second, CloseTimeout: time.Second,
		},
	})
}

// run runs a request other than leave.
func (r *memberRequest) run(m *cluster.Member) memberAnswer {
	ctx, cancel := context.WithTimeout(context.Background(), callLimit)
	defer cancel()
	a := memberAnswer{ID: r.ID}
	switch r.Op {
	case "members":
		a.Snapshot = &messages.Snapshot{Members: m.Members()}
	case "inspect":
		reply, err := m.Client().Do(ctx, &messages.Inspect{Limit: -1})
		if err != nil {
			a.Error = err.Error()
			break
		}
		a.Snapshot = reply.(*messages.Snapshot)
	case "call":
		op := &messages.CallTool{
			Header: messages.To("web", r.Scope),
			Params: &mcp.CallToolParams{Name: r.Tool, Arguments: counterArguments{Call: r.ID}},
		}
		op.ID = r.ID
		reply, err := m.Client().Do(ctx, op)
		if errors.As(err, &a.Failure) {
			break
		}
		a.Result = reply.(*messages.ToolResult)
	case "close":
		closed, err := m.Client().CloseAll(ctx)
		if err != nil {
			a.Error = err.Error()
		} else if len(closed.Left)+len(closed.Unanswered) > 0 {
			a.Error = fmt.Sprintf("not closed: %v; no answer from %v", closed.Left, closed.Unanswered)
		}
	default:
		a.Error = fmt.Sprintf("unknown request %q", r.Op)
	}
	return a
}

// stopMember leaves the cluster, and returns what could not be done.
func stopMember(m *cluster.Member) string {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit)
	defer cancel()
	if err := m.Stop(ctx); err != nil {
		return err.Error()
	}
	return ""
}
