package tests

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
	"github.com/mcpactor/mcpactor/tests/internal/stdioserver"
)

// B8: the host name of the server resolves to another machine.
func TestServerThatComesBackOnAnotherAddressIsFound(t *testing.T) {
	before := resourcesInUse()
	old, next := serve(t, faults.NewTools()), serve(t, faults.NewTools())
	var at atomic.Value
	at.Store(old.URL())
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
		u, err := url.Parse(at.Load().(string))
		require.NoError(t, err)
		return new(net.Dialer).DialContext(ctx, "tcp", u.Host)
	}
	h := start(t, supervisor.Config{Servers: []mcpbridge.Server{{
		Name: "s", URL: "http://localhost", HTTPClient: &http.Client{Transport: transport},
	}}})
	require.Equal(t, "1", h.send(call("a", "count")).text())
	at.Store(next.URL())
	old.Stop()
	r := h.send(call("a", "count", replay(messages.ReplayAlways))) // it may be sent on a connection that is just being closed
	require.Equal(t, "1", r.text())
	require.EqualValues(t, 2, r.ok().Generation)
	require.Equal(t, 1, next.Count("initialize"))
	h.stopAndVerify()
	require.Zero(t, next.Sessions())
	old.close()
	next.close()
	transport.CloseIdleConnections()
	before.verify(t)
}

// primed is the length of the part of an answer that has an event id, and not yet the
// result.
const primed = 60

// C4
func TestAnswerThatBreaksOffIsResumedOrLost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		resumable bool
		resume    faults.Fault // the fault of requests that continue the answer
		code      messages.Code
		detail    string
		expired   bool
	}{
		"without ids":              {false, nil, messages.CodeLost, "", false},
		"with ids":                 {true, nil, "", "", false},
		"cut again":                {true, faults.Times(1, faults.Cut()), "", "", false},
		"cut again and again":      {true, faults.Cut(), messages.CodeLost, "could not be resumed", false},
		"refused for a while":      {true, faults.Times(1, faults.Refuse(503, "")), "", "", false},
		"refused for good":         {true, faults.Refuse(503, ""), messages.CodeLost, "could not be resumed", false},
		"the session is not known": {true, nil, messages.CodeLost, "the session expired", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tools := func() *faults.Tools {
				tools := faults.NewTools()
				tools.Resumable = c.resumable
				return tools
			}
			cfg := supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", NoStream: true}}}
			overLocalHTTP(t, cfg, tools, func(h *harness, e *testServer) {
				h.send(&messages.ListTools{Header: messages.To("s", "a")}).reply()
				require.Equal(t, "1", h.send(call("a", "count")).text())
				e.Inject("tools/call", faults.Times(1, faults.CutAnswer(primed)))
				if c.expired {
					c.resume = e.Forget(faults.Expiries()[0])
				}
				if c.resume != nil {
					heal := e.Inject("GET", c.resume)
					defer heal()
				}
				began := time.Now()
				p := h.send(call("a", "count"))
				if c.code == "" {
					require.Equal(t, "2", p.text())
					require.False(t, p.ok().Replayed)
				} else {
					f := p.fails(c.code)
					require.True(t, f.MayHaveRun)
					require.Contains(t, f.Detail, c.detail)
				}
				require.Less(t, time.Since(began), 30*time.Second)
				r := h.send(call("a", "count")).ok()
				require.EqualValues(t, map[bool]int{false: 1, true: 2}[c.expired], r.Generation)
			})
		})
	}
}

// C5 over HTTP.
func TestServerThatHangsIsReplacedWhenItMissesAPing(t *testing.T) {
	cfg := supervisor.Config{Servers: []mcpbridge.Server{{Name: "s", KeepAlive: 10 * time.Second}}}
	overLocalHTTP(t, cfg, newHTTPTools, func(h *harness, e *testServer) {
		require.Equal(t, "1", h.send(call("a", "count")).text())
		time.Sleep(time.Minute) // synctest
		require.Zero(t, countEvents[*messages.SessionLost](h))
		heal := e.Inject("", faults.Hang())
		time.Sleep(21 * time.Second) // synctest
		requireEvents[*messages.SessionLost](h, 1)
		h.send(call("a", "count", within(200*time.Millisecond))).reply()
		heal()
		r := h.send(call("a", "count"))
		require.Equal(t, "2", r.text(), "attached again")
		require.EqualValues(t, 1, r.ok().Generation)
	})
}

// C6: text is skipped, whatever runs meanwhile, and the first is logged.
func TestTextOnStdoutIsSkipped(t *testing.T) {
	overStdio(t, "", supervisor.Config{}, func(h *harness) {
		first := pid(t, h.send(call("a", "pid")))
		op := call("a", "wait")
		waiting := h.send(op)
		h.awaitExecution(op)
		require.Zero(t, h.inspect().Counters.TextSkipped)
		for range 3 {
			require.Equal(t, "done", h.send(call("a", "garble")).text())
		}
		require.EqualValues(t, 3*len("Segmentation fault (just kidding)\n"), h.inspect().Counters.TextSkipped)
		require.Equal(t, first, pid(t, h.send(call("a", "pid"))))
		h.cancel(waiting)
		waiting.fails(messages.CodeCancelled)
		require.Equal(t, 1, h.dials.dialed())
	})
}

// C6: text without an end, and half a message.
func TestEndlessOrHalfLineOnStdoutRestartsTheProcess(t *testing.T) {
	for tool, c := range map[string]struct {
		size   int
		detail string
	}{
		"line": {50 << 20, "more than 1 MB of text without the end of a line"},
		"half": {0, "status 0"},
	} {
		t.Run(tool, func(t *testing.T) {
			overStdio(t, "", supervisor.Config{CloseTimeout: 300 * time.Millisecond}, func(h *harness) {
				h.send(&messages.ListTools{Header: messages.To("s", "a")}).reply()
				first := pid(t, h.send(call("a", "pid")))
				op := call("a", "wait")
				waiting := h.send(op)
				h.awaitExecution(op)
				h.send(call("a", tool, with("size", c.size))).reply()
				f := waiting.fails(messages.CodeLost)
				require.True(t, f.MayHaveRun)
				require.Contains(t, f.Detail, c.detail)
				require.LessOrEqual(t, len(f.Detail), 1<<10)
				require.NotEqual(t, first, pid(t, h.send(call("a", "pid"))))
				requireExit(t, first)
			})
		})
	}
}

// C7
func TestFloodOnStderrBlocksNobodyAndIsNotKept(t *testing.T) {
	overStdio(t, "", supervisor.Config{}, func(h *harness) {
		h.send(call("a", "pid")).ok()
		grown := heap()
		h.send(call("a", "flood", with("size", 24<<20))).ok()
		require.Less(t, heap(), grown+8<<20)
		h.send(call("a", "pid")).ok()
		require.Equal(t, 1, h.dials.dialed())
	})
}

// A6, A9 over stdio.
func TestProcessThatDoesNotInitializeSaysWhy(t *testing.T) {
	for trait, c := range map[stdioserver.Trait]struct {
		limit  time.Duration
		code   messages.Code
		detail string
	}{
		stdioserver.Mute:     {100 * time.Millisecond, messages.CodeUnavailable, "timed out"},
		stdioserver.Babbling: {time.Second, messages.CodeUnavailable, "writes text to stdout, and no answer"},
		stdioserver.Antique:  {10 * time.Second, messages.CodeProtocol, "version"},
	} {
		t.Run(string(trait), func(t *testing.T) {
			overStdio(t, trait, supervisor.Config{ConnectTimeout: c.limit}, func(h *harness) {
				f := h.send(call("a", "pid")).fails(c.code)
				require.Contains(t, f.Detail, c.detail)
				require.False(t, f.MayHaveRun)
			})
		})
	}
}
