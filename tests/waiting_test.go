package tests

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// waitUntil bounds how long an operation waits.
func waitUntil(d time.Duration) func(*messages.CallTool) {
	return func(op *messages.CallTool) { op.WaitUntil = time.Now().Add(d) }
}

// F2: the time to wait passes while a dial hangs, while the server is down, and while other calls run. The
// call certainly did not run.
func TestACallWaitsNoLongerThanItMay(t *testing.T) {
	refused := unavailableError("connection refused")
	refused.Server = mcpbridge.Absent
	for name, c := range map[string]struct {
		prepare func(h *harness)
		detail  string
		cause   bool
	}{
		"the dial hangs": {func(h *harness) {
			h.server.dial = func(ctx context.Context, _ dial.Request) error {
				<-ctx.Done()
				return dial.AsError(ctx.Err())
			}
		}, "while waiting for the session", false},
		"the server is down": {func(h *harness) {
			h.server.dial = func(context.Context, dial.Request) error { return refused }
		}, "connection refused", true},
		"other calls run": {func(h *harness) { h.calls(2, "a", "hang") }, "while waiting for other calls of the session", false},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, supervisor.Config{MaxInFlight: 2}, func(h *harness) {
				h.server.set(func() { c.prepare(h) })
				p := h.send(call("a", "count", within(30*time.Second), waitUntil(5*time.Second)))
				f := p.fails(messages.CodeUnavailable)
				require.Equal(t, 5*time.Second, p.answeredAt.Sub(p.sent))
				require.False(t, f.MayHaveRun)
				require.Contains(t, f.Detail, c.detail)
				require.Equal(t, c.cause, errors.As(f.Cause, new(*mcpbridge.Error)))
				h.send(&messages.CancelScope{Scope: "a"}).reply()
			})
		})
	}
}

// The time in which a session waits for a permit to start its process is not part of its dial.
func TestASessionWaitsForOtherProcessesToStart(t *testing.T) {
	cfg := supervisor.Config{MaxStarts: 1, ConnectTimeout: 10 * time.Second, Servers: []supervisor.Server{{Name: "one", Command: "one"}, {Name: "two", Command: "two"}}}
	inFakeTime(t, cfg, func(h *harness) {
		h.server.set(func() {
			h.server.dial = func(context.Context, dial.Request) error {
				time.Sleep(8 * time.Second)
				return nil
			}
		})
		queue := func(scope, server string, d time.Duration) *sentCommand {
			defer synctest.Wait()
			return h.send(call(scope, "count", on(server), within(d)))
		}
		ones := []*sentCommand{queue("a", "one", time.Minute), queue("b", "one", time.Minute), queue("c", "one", time.Minute)}
		other := queue("a", "two", time.Minute)
		late := queue("d", "two", 5*time.Second)
		require.Contains(t, late.fails(messages.CodeDeadline).Detail, "MaxStarts")
		for i, p := range []*sentCommand{ones[0], ones[1], other, ones[2]} { // servers take turns
			p.ok()
			require.Equal(t, time.Duration(i+1)*8*time.Second, p.took())
		}
	})
}

func TestTheTimeToWaitDoesNotBoundTheRun(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		require.Equal(t, "done", h.send(call("a", "slow", waitUntil(100*time.Millisecond))).text(), "it takes a second")

		// One that was refused by a session that has expired still waits, and certainly did not run.
		h.server.expire("a")
		h.server.set(func() {
			h.server.dial = func(ctx context.Context, _ dial.Request) error {
				<-ctx.Done()
				return dial.AsError(ctx.Err())
			}
		})
		p := h.send(call("a", "count", waitUntil(2*time.Second)))
		require.False(t, p.fails(messages.CodeUnavailable).MayHaveRun)
		require.Equal(t, 2*time.Second, p.answeredAt.Sub(p.sent))
	})
}

func TestACallThatMayHaveRunWaitsUntilItsDeadline(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(call("a", "count")).ok()
		p := h.send(call("a", "hang", within(20*time.Second), waitUntil(2*time.Second), replay(messages.ReplayAlways)))
		time.Sleep(time.Second)
		h.server.set(func() {
			h.server.dial = func(ctx context.Context, _ dial.Request) error {
				<-ctx.Done()
				return dial.AsError(ctx.Err())
			}
		})
		h.server.breakConnection("a", true)
		f, _ := p.reply().(*messages.Failure)
		require.True(t, f.MayHaveRun)
		require.Equal(t, 20*time.Second, p.answeredAt.Sub(p.sent))
	})
}

func TestACallThatMayNotWaitRunsOnlyOnAnOpenSession(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		p := h.send(call("a", "count", waitUntil(-time.Second)))
		require.False(t, p.fails(messages.CodeUnavailable).MayHaveRun)
		time.Sleep(time.Second) // the session opens nevertheless
		require.Equal(t, "1", h.send(call("a", "count", waitUntil(-time.Second))).text())
	})
}
