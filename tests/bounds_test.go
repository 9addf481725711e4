package tests

import (
	"context"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
)

// refuses checks that a call is refused unsent, and returns the failure.
func (h *harness) refuses(cmd *messages.CallTool, code messages.Code) *messages.Failure {
	h.t.Helper()
	f := h.send(cmd).fails(code)
	require.False(h.t, f.MayHaveRun)
	require.Zero(h.t, f.Attempt)
	return f
}

func TestCallsBeyondABoundAreNotSent(t *testing.T) {
	cfg := supervisor.Config{
		Bounds: []supervisor.Bound{{Total: 1}}, // of "s"
		Servers: own(supervisor.Limits{Bounds: []supervisor.Bound{
			{PerMinute: 3}, {Tool: "hang", InFlight: 1}, {Shared: true, Total: 9},
		}}),
	}
	inFakeTime(t, cfg, func(h *harness) {
		for range 3 {
			h.send(call("a", "count", on("own"))).ok()
		}
		f := h.refuses(call("a", "count", on("own")), messages.CodeRateLimited)
		require.InDelta(t, 20*time.Second, f.RetryAfter, float64(time.Second))
		h.send(call("b", "count", on("own"))).ok()
		time.Sleep(f.RetryAfter)
		h.send(call("a", "count", on("own"))).ok()

		time.Sleep(time.Minute)
		hanging := h.send(call("a", "hang", on("own"), within(time.Second)))
		synctest.Wait()
		h.refuses(call("a", "hang", on("own")), messages.CodeBusy)
		other := h.send(call("b", "hang", on("own"), within(2*time.Second)))
		hanging.fails(messages.CodeDeadline)
		h.send(call("a", "hang", on("own"), within(time.Second))).fails(messages.CodeDeadline)
		other.fails(messages.CodeDeadline)
		h.send(call("c", "count", on("own"))).ok() // the ninth
		require.Contains(t, h.refuses(call("d", "count", on("own")), messages.CodeRefused).Detail, "is 9 in all")

		h.send(call("a", "count")).ok()
		h.refuses(call("a", "count"), messages.CodeRefused)
		h.send(&messages.ListTools{Header: messages.To("s", "a")}).reply()
		require.EqualValues(t, 3, h.serverOf("own").Load.Bounded)
		require.EqualValues(t, 1, h.serverOf("s").Load.Bounded)
	})
}

// A call that its session hands back, or repeats, counts once, and ends once.
func TestCallCountsOnceHoweverOftenItIsSent(t *testing.T) {
	inFakeTime(t, supervisor.Config{Bounds: []supervisor.Bound{{Total: 3, InFlight: 1}}}, func(h *harness) {
		h.send(call("a", "count")).ok()
		h.server.expire("a")
		h.send(call("a", "count")).ok()
		h.send(&messages.Restart{Key: messages.Key{Server: "s", Scope: "a"}}).reply()
		h.send(call("a", "count")).ok()
		h.refuses(call("a", "count"), messages.CodeRefused)
	})
}

// A reload changes the bounds of a server without closing its sessions.
func TestReloadChangesTheBounds(t *testing.T) {
	servers := own(supervisor.Limits{Bounds: []supervisor.Bound{{Total: 1}}})
	inFakeTime(t, supervisor.Config{Servers: servers}, func(h *harness) {
		h.send(call("a", "count", on("own"))).ok()
		h.refuses(call("a", "count", on("own")), messages.CodeRefused)
		servers = own(supervisor.Limits{Bounds: []supervisor.Bound{{Total: 2}}})
		require.Zero(t, h.reload(servers...).Sessions)
		h.send(call("a", "count", on("own"))).ok()
		require.Zero(t, h.reload(own(supervisor.Limits{})...).Sessions)
		for range 5 {
			h.send(call("a", "count", on("own"))).ok()
		}
	})
}

func TestCallsThatRepeatThemselvesStop(t *testing.T) {
	cfg := supervisor.Config{MaxRepeats: 3, Servers: own(supervisor.Limits{MaxRepeats: -1})}
	inFakeTime(t, cfg, func(h *harness) {
		h.executed = nil // calls of one id are one call to the verifier
		same := func(opts ...func(*messages.CallTool)) *messages.CallTool {
			return call("a", "fail", append(opts, with("call", "same"))...)
		}
		for range 3 {
			require.True(t, h.send(same()).ok().Result.IsError)
		}
		f := h.refuses(same(), messages.CodeRateLimited)
		require.Contains(t, f.Detail, "3 times in a row")
		require.InDelta(t, time.Minute, f.RetryAfter, float64(time.Second))
		h.send(call("b", "fail", with("call", "same"))).ok() // another scope has a row of its own
		h.send(call("a", "count")).ok()
		h.send(same()).ok()
		for range 9 {
			h.send(call("a", "count")).ok() // has other results
			h.send(same(on("own"))).ok()
		}
		require.EqualValues(t, 1, h.serverOf("s").Load.Bounded)
	})
}

// A durable call that was refused runs later, and whoever asks for one that has run gets its result, whatever the bounds.
func TestBoundsOfDurableCalls(t *testing.T) {
	cfg := supervisor.Config{CallStore: new(resume.Memory), MaxRepeats: 2, Bounds: []supervisor.Bound{{PerMinute: 2, Total: 4}}}
	inFakeTime(t, cfg, func(h *harness) {
		h.executed = nil // a call that was refused runs later
		for range 3 {
			require.Equal(t, "1", h.send(call("a", "count", durable("one"))).text())
		}
		require.Equal(t, "2", h.send(call("a", "count", durable("two"))).text())
		h.refuses(call("a", "count", durable("three")), messages.CodeRateLimited)
		time.Sleep(time.Minute)
		require.Equal(t, "3", h.send(call("a", "count", durable("three"))).text())
		require.Equal(t, "4", h.send(call("a", "count", durable("four"))).text())
		h.refuses(call("a", "count", durable("five")), messages.CodeRefused)
		for i, id := range []string{"one", "two", "three", "four"} {
			require.Equal(t, strconv.Itoa(i+1), h.send(call("a", "count", durable(id))).text())
		}
	})
}

// faulty are arguments that panic when they are encoded.
type faulty struct{}

func (faulty) MarshalJSON() ([]byte, error) { panic("no JSON") }

// Arguments that cannot be encoded fail their own call only.
func TestArgumentsThatPanicAreComparedWithNone(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxRepeats: 3}, func(h *harness) {
		h.executed = nil
		h.send(call("a", "count")).ok()
		running := h.send(call("a", "hang", within(time.Minute)))
		synctest.Wait()
		for range 5 {
			wrong := call("a", "count")
			wrong.Params.Arguments = faulty{}
			f := h.send(wrong).fails(messages.CodeInternal)
			t.Log(f)
		}
		require.EqualValues(t, 1, h.send(call("a", "count")).ok().Generation)
		running.fails(messages.CodeDeadline)
	})
}

// An agent that makes a call again and again which its server refuses is stopped as well.
func TestErrorsThatRepeatThemselvesStop(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxRepeats: 3}, func(h *harness) {
		for range 3 {
			h.send(call("a", "refuse", with("call", "same"))).fails(messages.CodeInvalid)
		}
		h.refuses(call("a", "refuse", with("call", "same")), messages.CodeRateLimited)
	})
}

// A call that waits in vain for its server does not count in all.
func TestCallThatIsNotSentDoesNotCountForATotal(t *testing.T) {
	inFakeTime(t, supervisor.Config{Bounds: []supervisor.Bound{{Total: 1}}}, func(h *harness) {
		h.server.set(func() {
			h.server.dial = func(ctx context.Context, _ dial.Request) error { <-ctx.Done(); return context.Cause(ctx) }
		})
		h.send(call("a", "count", within(time.Second))).fails(messages.CodeDeadline)
		h.server.set(func() { h.server.dial = nil })
		time.Sleep(time.Minute) // the dial ends
		h.send(call("a", "count")).ok()
		h.refuses(call("a", "count"), messages.CodeRefused)
	})
}

func TestWrongBoundsAreNamed(t *testing.T) {
	for want, cfg := range map[string]supervisor.Config{
		"bounds[1].total: -1 is negative":                                {Bounds: []supervisor.Bound{{Total: 1}, {Total: -1}}},
		"bounds[0].total: 16777217 is more than 16777216: 0 is no bound": {Bounds: []supervisor.Bound{{Total: 1<<24 + 1}}},
		"maxRepeats: -2 is negative":                                     {MaxRepeats: -2},
		`servers[0] "own": limits.bounds[0].tool: "[" is not a pattern`: {Servers: own(supervisor.Limits{
			Bounds: []supervisor.Bound{{Tool: "[", Total: 1}},
		})},
	} {
		if cfg.Servers == nil {
			cfg.Servers = own(supervisor.Limits{})
		}
		_, err := supervisor.Start(nil, cfg)
		require.ErrorContains(t, err, want)
	}
}
