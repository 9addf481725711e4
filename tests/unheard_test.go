package tests

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// whileUnheard runs a scenario while a front answers in place of server "s", and scope a has a session. Server
// "other" works.
func whileUnheard(t *testing.T, cfg supervisor.Config, scenario func(h *harness, back func())) {
	t.Helper()
	cfg.Servers = []supervisor.Server{{Name: "s"}, {Name: "other", InMemory: mcp.NewServer(&mcp.Implementation{Name: "other"}, nil)}}
	overLocalHTTP(t, cfg, newHTTPTools, func(h *harness, e *testServer) {
		h.send(call("a", "count")).ok()
		back := e.Inject("", faults.Refuse(502, "Bad Gateway"))
		once := h.send(call("a", "count", replay(messages.ReplayNever)))
		require.True(h.t, once.fails(messages.CodeServerError).MayHaveRun)
		require.Zero(h.t, once.took())
		scenario(h, back)
	})
}

// C12: calls that wait behind a front wait as for any server that is away, and are not sent meanwhile.
func TestCallsOfAnUnheardSessionAreParked(t *testing.T) {
	whileUnheard(t, supervisor.Config{}, func(h *harness, back func()) {
		patient := h.send(call("a", "count", replay(messages.ReplayNever)))
		short := h.send(call("a", "count", within(2*time.Second)))
		until := h.send(call("a", "count", func(op *messages.CallTool) { op.WaitUntil = time.Now().Add(time.Second) }))
		cancelled := h.send(call("a", "count"))
		synctest.Wait()
		h.cancel(cancelled)
		require.False(h.t, cancelled.fails(messages.CodeCancelled).MayHaveRun)
		one := h.session("a")
		require.Equal(h.t, messages.StateReady, one.State)
		require.Equal(h.t, 3, one.Waiting)
		require.Contains(h.t, one.Cause, "502 Bad Gateway")
		for limit, p := range map[time.Duration]*sentCommand{time.Second: until, 2 * time.Second: short} {
			f := p.fails(messages.CodeUnavailable)
			require.Equal(h.t, limit, p.took())
			require.False(h.t, f.MayHaveRun)
			require.Contains(h.t, f.Detail, "502 Bad Gateway")
			require.Zero(h.t, f.Attempt)
		}
		time.Sleep(10 * time.Second) // synctest
		back()
		at := time.Now()
		result := patient.ok()
		require.LessOrEqual(h.t, patient.answeredAt.Sub(at), time.Second)
		require.Equal(h.t, 1, result.Attempt, "waiting is no attempt")
		require.False(h.t, result.Replayed)
		require.Zero(h.t, countEvents[*messages.SessionRestarting](h))
		one = h.session("a")
		require.Zero(h.t, one.Waiting)
		require.Empty(h.t, one.Cause)
	})
}

// C12: a session whose calls wait behind a front makes room for another one at once.
func TestUnheardSessionMakesRoom(t *testing.T) {
	whileUnheard(t, supervisor.Config{MaxSessions: 1}, func(h *harness, back func()) {
		patient := h.send(call("a", "count"))
		synctest.Wait()
		other := h.send(&messages.Open{Header: messages.To("other", "a")})
		require.IsType(h.t, &messages.SessionInfo{}, other.reply())
		require.Zero(h.t, other.took(), "at once")
		back()
		require.EqualValues(h.t, 2, patient.ok().Generation)
	})
}

// C12: with FailFast, calls do not wait behind a front either, apart from the moment in which the server is asked.
func TestCallsFailFastBehindAFront(t *testing.T) {
	whileUnheard(t, supervisor.Config{FailFast: true}, func(h *harness, back func()) {
		for range 3 {
			p := h.send(call("a", "count"))
			require.False(h.t, p.fails(messages.CodeUnavailable).MayHaveRun)
			require.LessOrEqual(h.t, p.took(), time.Second)
		}
		time.Sleep(10 * time.Second) // synctest
		back()
		h.send(call("a", "count")).ok()
	})
}
