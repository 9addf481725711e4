package toolset_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/callbook"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// bank is a server whose tool pays, and takes its time for that. Several processes may call it.
type bank struct {
	*testing.T
	server *mcp.Server

	mu     sync.Mutex
	takes  time.Duration
	ledger []string // the ids of the calls, as the server sees them
}

// atBank runs a scenario in a bubble of testing/synctest, with what keeps its calls.
func atBank(t *testing.T, scenario func(ctx context.Context, b *bank)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(3 * time.Second) }) // until Proto.Actor's throttle of dead letters ends
		b := &bank{T: t, server: mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)}
		b.server.AddTool(&mcp.Tool{Name: "pay", InputSchema: map[string]any{"type": "object"}}, b.pay)
		scenario(t.Context(), b)
	})
}

// pay is the tool. What it has begun, it has done, also if it is cancelled.
func (b *bank) pay(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	b.mu.Lock()
	id, _ := req.Params.Meta[callbook.TokenKey].(string)
	b.ledger = append(b.ledger, id)
	takes := b.takes
	b.mu.Unlock()
	select {
	case <-time.After(takes):
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "paid"}}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// take sets how long the next payments take.
func (b *bank) take(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.takes = d
}

// paid returns the ids of the calls that have run.
func (b *bank) paid() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ledger
}

// process starts a process with a toolset whose calls a store keeps, or its memory. It ends with the scenario.
func (b *bank) process(store mcpbridge.Store, cfg toolset.Config) *world {
	b.Helper()
	return b.start(supervisor.Config{CallStore: store}, cfg)
}

func (b *bank) start(cfg supervisor.Config, tools toolset.Config) *world {
	b.Helper()
	cfg.Servers = []mcpbridge.Server{{Name: "bank", InMemory: b.server}}
	if tools.Scope == "" {
		tools.Scope = "alice"
	}
	if tools.Servers == nil {
		tools.Servers = []toolset.Filter{{Name: "*"}}
	}
	w := &world{T: b.T, system: newSystem()}
	var err error
	w.sup, err = supervisor.Start(w.system, cfg)
	require.NoError(b, err)
	b.Cleanup(func() { require.NoError(b, w.sup.Stop(context.Background())) })
	w.Toolset, err = toolset.New(w.system, w.sup, tools)
	require.NoError(b, err)
	b.Cleanup(w.Close)
	return w
}

// outcome returns the text of a result, or else the code of the failure, and "?" if the call may have run.
func outcome(result *messages.ToolResult, err error) string {
	f, is := errors.AsType[*messages.Failure](err)
	switch {
	case err == nil:
		return toolset.Convert(result.Result).Text()
	case !is:
		return err.Error()
	case f.MayHaveRun:
		return string(f.Code) + "?"
	}
	return string(f.Code)
}

// answering answers in a goroutine, and returns the channel of the outcome.
func (w *world) answering(ctx context.Context, p *toolset.Pending, decision toolset.Decision) <-chan string {
	answered := make(chan string, 1)
	go func() { answered <- outcome(w.Answer(ctx, p.ID, p.Digest, decision)) }()
	synctest.Wait()
	return answered
}

// again returns what an answer gets.
func (w *world) again(ctx context.Context, p *toolset.Pending, decision toolset.Decision) string {
	return outcome(w.Answer(ctx, p.ID, p.Digest, decision))
}

// moody is a store that several processes use. Each has a value of its own.
type moody struct {
	*resume.Memory
	takes time.Duration // for each request

	mu     sync.Mutex
	mood   string // "" answers, "fails" or "hangs"
	diesAt string // the state whose record is the last one
	isKept bool   // that record
}

// set sets the mood.
func (m *moody) set(mood string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mood = mood
}

// dies lets the process of the store die at the change to a state, which is written or not.
func (m *moody) dies(state callbook.State, isKept bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.diesAt, m.isKept = string(state), isKept
}

// answers waits for the store, and returns its error.
func (m *moody) answers() error {
	m.mu.Lock()
	mood, takes := m.mood, m.takes
	m.mu.Unlock()
	time.Sleep(takes)
	switch mood {
	case "fails":
		return errors.New("connection refused")
	case "hangs":
		time.Sleep(10 * time.Second) // whatever its context says
		return errors.New("timeout")
	}
	return nil
}

func (m *moody) Load(ctx context.Context, key messages.Key) (*mcpbridge.Record, error) {
	if err := m.answers(); err != nil {
		return nil, err
	}
	return m.Memory.Load(ctx, key)
}

func (m *moody) Keys(ctx context.Context) ([]messages.Key, error) {
	if err := m.answers(); err != nil {
		return nil, err
	}
	return m.Memory.Keys(ctx)
}

func (m *moody) Swap(ctx context.Context, key messages.Key, from uint64, record *mcpbridge.Record) (bool, error) {
	if err := m.answers(); err != nil {
		return false, err
	}
	m.mu.Lock()
	dies, isKept := m.diesAt != "" && strings.Contains(string(record.Call), `"state":"`+m.diesAt+`"`), m.isKept
	m.mu.Unlock()
	if !dies {
		return m.Memory.Swap(ctx, key, from, record)
	}
	m.set("fails")
	if isKept {
		if _, err := m.Memory.Swap(ctx, key, from, record); err != nil {
			return false, err
		}
	}
	return false, errors.New("the process is dead")
}
