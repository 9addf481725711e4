package tests

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/net/http2"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// H-A1: a call is sent again only if the reset proves that it was not processed, or if it
// may run twice.
func TestCallWhoseStreamIsResetIsReplayedOnlyIfThatIsSafe(t *testing.T) {
	for _, r := range resets() {
		t.Run(r.name, func(t *testing.T) {
			overHTTP2(t, mcpbridge.Server{NoStream: true}, func(h *harness, e *testServer, front *http2Server) {
				require.Equal(t, "1", h.send(call("a", "count")).text())
				h.send(&messages.ListTools{Header: messages.To("s", "a")}).reply() // so that the annotations are known
				for _, c := range []struct {
					tool   string
					replay messages.Replay
					again  bool // it is sent again also if it may have run
				}{
					{tool: "count"},
					{tool: "count/ro", again: true},
					{tool: "count", replay: messages.ReplayAlways, again: true},
					{tool: "count/ro", replay: messages.ReplayNever},
				} {
					front.inject(once("tools/call", &r))
					op := call("a", c.tool, replay(c.replay))
					p := h.send(op)
					switch {
					case c.replay != messages.ReplayNever && (c.again || r.unprocessed()):
						require.True(t, p.ok().Replayed)
					case r.unprocessed():
						require.False(t, p.fails(messages.CodeUnavailable).MayHaveRun)
					default:
						require.True(t, p.fails(messages.CodeLost).MayHaveRun)
					}
					if r.late && !c.again {
						require.Equal(t, 1, e.Executions()[op.ID])
					}
					require.EqualValues(t, 1, h.send(call("a", "count")).ok().Generation, "the session is kept")
				}
				require.Equal(t, 1, e.Count("initialize"))
			})
		})
	}
}

// once returns a fault for the first request of a method.
func once(method string, r *reset) func(string) *reset {
	return func(of string) *reset {
		if of != method || r == nil {
			return nil
		}
		first := r
		r = nil
		return first
	}
}

// H-A1: a server with too many streams may refuse a stream repeatedly.
func TestCallThatAServerDidNotProcessIsSentAgainAFewTimes(t *testing.T) {
	for name, c := range map[string]struct {
		times int
		works bool
	}{
		"a few times": {4, true},
		"for ever":    {1 << 30, false},
	} {
		t.Run(name, func(t *testing.T) {
			overHTTP2(t, mcpbridge.Server{NoStream: true}, func(h *harness, _ *testServer, front *http2Server) {
				require.Equal(t, "1", h.send(call("a", "count")).text())
				var mu sync.Mutex
				sent := 0
				front.inject(func(method string) *reset {
					mu.Lock()
					defer mu.Unlock()
					if method != "tools/call" {
						return nil
					}
					if sent++; sent > c.times {
						return nil
					}
					return &reset{code: http2.ErrCodeRefusedStream}
				})
				p := h.send(call("a", "count"))
				if c.works {
					require.True(t, p.ok().Replayed)
					require.Equal(t, "2", p.text())
				} else {
					require.False(t, p.fails(messages.CodeUnavailable).MayHaveRun)
				}
				mu.Lock()
				defer mu.Unlock()
				require.LessOrEqual(t, sent, 8)
			})
		})
	}
}

// H-A1: streams are reset at random points of all requests. The verifier counts what has
// run.
func TestServerThatResetsStreamsAtRandomRunsNothingTwice(t *testing.T) {
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			overHTTP2(t, mcpbridge.Server{}, func(h *harness, _ *testServer, front *http2Server) {
				random, all := rand.New(rand.NewPCG(seed, 0)), resets()
				var mu sync.Mutex
				front.inject(func(string) *reset {
					mu.Lock()
					defer mu.Unlock()
					if random.IntN(8) > 0 {
						return nil
					}
					return &all[random.IntN(len(all))]
				})
				var sent []*sentCommand
				for i := range 300 {
					tool := []string{"count", "count/ro", "echo"}[i%3]
					sent = append(sent, h.send(call(fmt.Sprint(i%5), tool, within(20*time.Second), replay(messages.Replay(i%7%3)))))
				}
				for _, p := range sent {
					p.reply()
				}
				front.inject(nil)
				for i := range 5 {
					h.send(call(fmt.Sprint(i), "count")).ok()
				}
			})
		})
	}
}
