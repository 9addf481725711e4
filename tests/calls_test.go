package tests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	"github.com/mcpactor/mcpactor/tests/faults"
)

// bank is a server in memory. Its tool pays, and takes its time for that.
type bank struct {
	server *mcp.Server
	takes  time.Duration
	text   string

	mu     sync.Mutex
	ledger []string // the ids of the calls, as the server sees them
}

func newBank(t *testing.T) *bank {
	t.Cleanup(func() { time.Sleep(3 * time.Second) }) // until Proto.Actor's throttle of dead letters ends
	b := &bank{server: mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil), text: "paid"}
	b.server.AddTool(&mcp.Tool{Name: "pay", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		b.mu.Lock()
		id, _ := req.Params.Meta[callbook.TokenKey].(string)
		b.ledger = append(b.ledger, id)
		takes, text := b.takes, b.text
		b.mu.Unlock()
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, StructuredContent: json.RawMessage(`{"amount":9007199254740993}`)}, nil
	})
	return b
}

func (b *bank) paid() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.ledger)
}

// process starts a supervisor before the bank, and stops it at the end of the test.
func (b *bank) process(t *testing.T, cfg supervisor.Config) *supervisor.Supervisor {
	t.Helper()
	cfg.Servers = []mcpbridge.Server{{Name: "bank", InMemory: b.server}}
	sup, err := supervisor.Start(nil, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sup.Stop(context.Background())) })
	return sup
}

// pay makes a durable call.
func pay(sup *supervisor.Supervisor, id string, within time.Duration) (string, error) {
	ctx, cancel := context.WithTimeout(messages.WithDurable(context.Background(), id), within)
	defer cancel()
	result, err := sup.Client().CallTool(ctx, "bank", "alice", &mcp.CallToolParams{Name: "pay"})
	if err != nil {
		return "", err
	}
	return result.Result.Content[0].(*mcp.TextContent).Text, nil
}

// may checks that a failure has a code, and says that the call may have run.
func may(t *testing.T, err error, code messages.Code, detail string) {
	t.Helper()
	f, is := errors.AsType[*messages.Failure](err)
	require.True(t, is, "%v", err)
	require.Equal(t, code, f.Code, "%v", f)
	require.True(t, f.MayHaveRun, "%v", f)
	require.Contains(t, f.Detail, detail)
}

// keeping is a store that keeps no outcome, as if the process had died before it was written, while it is told so. It counts the requests.
type keeping struct {
	resume.Memory
	mu   sync.Mutex
	dies bool
}

func (s *keeping) Swap(ctx context.Context, key messages.Key, from uint64, record *mcpbridge.Record) (bool, error) {
	s.mu.Lock()
	dies := s.dies
	s.mu.Unlock()
	if dies && !strings.Contains(string(record.Call), `"state":"sent"`) {
		return false, errors.New("the process is dead")
	}
	return s.Memory.Swap(ctx, key, from, record)
}

func (s *keeping) die(dies bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dies = dies
}

// Results are secrets at rest: they are kept within a bound of size and time.
func TestResultIsKeptWithinBounds(t *testing.T) {
	for name, test := range map[string]struct {
		cfg  supervisor.Config
		text string
		kept bool
	}{
		"by default":    {kept: true},
		"too large":     {text: strings.Repeat("x", 64<<10)},
		"a large bound": {cfg: supervisor.Config{MaxKeptResult: 1 << 20}, text: strings.Repeat("x", 64<<10), kept: true},
		"no bound":      {cfg: supervisor.Config{MaxKeptResult: -1, KeepResults: -1}, text: strings.Repeat("x", 2<<20), kept: true},
		"dropped":       {cfg: supervisor.Config{DropResults: true}},
		"short":         {cfg: supervisor.Config{KeepResults: time.Minute}, kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, store := newBank(t), new(resume.Memory)
				b.text = test.text
				test.cfg.CallStore = store
				sup := b.process(t, test.cfg)
				said, err := pay(sup, "1", time.Minute)
				require.NoError(t, err)
				require.Equal(t, test.text, said)
				record := func() string {
					r, err := store.Load(t.Context(), callbook.KeyOf("alice", "1"))
					require.NoError(t, err)
					if r == nil {
						return ""
					}
					return string(r.Call)
				}
				said, err = pay(sup, "1", time.Minute)
				if test.kept {
					require.NoError(t, err)
					require.Equal(t, test.text, said)
					require.Contains(t, record(), "9007199254740993")
				} else {
					may(t, err, messages.CodeLost, "it ran")
					require.NotContains(t, record(), "9007199254740993")
				}
				if test.cfg.KeepResults == time.Minute {
					time.Sleep(2 * time.Minute)
					_, err = pay(sup, "1", time.Minute)
					may(t, err, messages.CodeLost, "its result is no longer kept")
					time.Sleep(time.Hour)
					_, err = pay(sup, "2", time.Minute) // which sweeps
					require.NoError(t, err)
					time.Sleep(time.Second)
					require.NotContains(t, record(), "9007199254740993")
				}
				require.NotZero(t, b.paid())
				time.Sleep(25 * time.Hour)
				if test.cfg.KeepResults != -1 {
					_, err = pay(sup, "3", time.Minute)
					require.NoError(t, err)
					time.Sleep(time.Second)
					require.Empty(t, record(), "nobody asks any more")
				}
			})
		})
	}
}

// Two processes on one store: the second one waits for the first.
func TestAnotherProcessWaitsForTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, store := newBank(t), new(resume.Memory)
		b.takes = 10 * time.Second
		one, two := b.process(t, supervisor.Config{CallStore: store}), b.process(t, supervisor.Config{CallStore: store})
		said := make(chan string, 2)
		for _, sup := range []*supervisor.Supervisor{one, two} {
			go func() {
				text, err := pay(sup, "1", time.Minute)
				said <- fmt.Sprint(text, err)
			}()
		}
		require.Equal(t, "paid<nil>", <-said)
		require.Equal(t, "paid<nil>", <-said)
		require.Equal(t, 1, b.paid())

		go pay(one, "2", time.Minute)
		time.Sleep(time.Second)
		_, err := pay(two, "2", 3*time.Second)
		may(t, err, messages.CodeLost, "another process has sent the call")
		time.Sleep(time.Minute)
		require.Equal(t, 2, b.paid())
	})
}

// The process dies while the call runs. The next one finds out what became of it.
func TestWhatBecameOfTheCallIsFoundOut(t *testing.T) {
	ran := &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "found"}}}
	for name, test := range map[string]struct {
		says   messages.Resolution
		result *mcp.CallToolResult
		err    error
		panics bool
		want   string // "" is lost
		asked  int    // by two who ask
		runs   int
	}{
		"it ran":             {says: messages.ResolvedRan, result: ran, want: "found", asked: 1, runs: 1},
		"it ran, no result":  {says: messages.ResolvedRan, asked: 1, runs: 1},
		"it did not run":     {says: messages.ResolvedNotRun, want: "paid", asked: 1, runs: 2},
		"nobody knows":       {says: messages.ResolvedUnknown, asked: 1, runs: 1},
		"the function fails": {err: errors.New("not now"), asked: 2, runs: 1},
		"it panics":          {panics: true, asked: 2, runs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b, store := newBank(t), new(keeping)
				asked := 0
				cfg := supervisor.Config{CallStore: store, CloseTimeout: time.Second}
				one := b.process(t, cfg)
				store.die(true)
				said, err := pay(one, "1", 5*time.Second)
				require.NoError(t, err, "the answer came; that it was not recorded is in the log")
				require.Equal(t, "paid", said)
				store.die(false)

				cfg.Resolve = func(ctx context.Context, c *supervisor.Client, call *messages.CallTool) (messages.Resolution, *mcp.CallToolResult, error) {
					asked++
					_, err := c.CallTool(ctx, call.Key.Server, call.Key.Scope, &mcp.CallToolParams{Name: "pay"}) // any call of the scope
					require.NoError(t, err)
					b.mu.Lock()
					b.ledger = b.ledger[:len(b.ledger)-1]
					b.mu.Unlock()
					if test.panics {
						panic("bug")
					}
					return test.says, test.result, test.err
				}
				two := b.process(t, cfg)
				began := time.Now()
				for range 2 {
					said, err := pay(two, "1", time.Minute)
					if test.want != "" {
						require.NoError(t, err)
						require.Equal(t, test.want, said)
					} else {
						may(t, err, messages.CodeLost, "")
					}
				}
				require.Less(t, time.Since(began), 10*time.Second, "until the first process had to end the call")
				require.Equal(t, test.asked, asked)
				require.Equal(t, test.runs, b.paid())
				require.Equal(t, b.ledger[0], b.ledger[len(b.ledger)-1], "each send has the same id")
				require.NotEmpty(t, b.ledger[0])
			})
		})
	}
}

// The call is lost in this process: what became of it is found out before the caller has its reply.
func TestLostCallIsFoundOutAtOnce(t *testing.T) {
	cfg := supervisor.Config{
		CallStore: new(resume.Memory),
		Resolve: func(context.Context, *supervisor.Client, *messages.CallTool) (messages.Resolution, *mcp.CallToolResult, error) {
			return messages.ResolvedRan, &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "found"}}}, nil
		},
	}
	withTasks(t, cfg, func(w *taskWorld) {
		w.local.Inject("tools/call", faults.Times(1, faults.CutAnswer(0)))
		require.Equal(t, "found", w.send(call("a", "work", durable("1"))).text())
		require.Equal(t, "found", w.send(call("a", "work", durable("1"))).text())
		require.Equal(t, 1, w.tasks.Runs()["1"])
		w.executed = nil // the two calls of one id are one call to the verifier
	})
}
