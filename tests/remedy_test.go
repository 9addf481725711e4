package tests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// What only a change of the configuration can mend is answered with the remedy, and never with
// an invitation to try again. The mistakes are those of the table in mcpbridge/internal/remedy.go.
func TestPermanentMistakeIsAnsweredWithItsRemedy(t *testing.T) {
	for _, e := range []*mcpbridge.Error{
		{Class: mcpbridge.Unavailable, Server: mcpbridge.Strange, Status: 404},
		{Class: mcpbridge.Protocol, Server: mcpbridge.Strange},
		{Class: mcpbridge.Protocol, Server: mcpbridge.Present},
		{Class: mcpbridge.Unauthorized, Server: mcpbridge.Present, Status: 401},
		{Class: mcpbridge.Invalid, Server: mcpbridge.Present},
	} {
		t.Run(e.Class.String(), func(t *testing.T) {
			e.Detail, e.Remedy = "a mistake", "mend it"
			inFakeTime(t, supervisor.Config{}, func(h *harness) {
				h.server.set(func() { h.server.dial = failingDial(e) })
				for range 5 {
					f := h.send(call("a", "count")).fails(e.Class.Code())
					require.Equal(t, "tools/call \"count\" on s/a: "+string(e.Class.Code())+": a mistake; mend it", f.Error())
					require.Zero(t, f.RetryAfter)
				}
			})
		})
	}
}

// The same answer of a server that has worked before may come from a front, and pass.
func TestMistakeOfAServerThatHasWorkedMayPass(t *testing.T) {
	for name, failFast := range map[string]bool{"waiting": false, "fail fast": true} {
		t.Run(name, func(t *testing.T) { testMistakePasses(t, failFast) })
	}
}

func testMistakePasses(t *testing.T, failFast bool) {
	inFakeTime(t, supervisor.Config{FailFast: failFast}, func(h *harness) {
		h.send(call("a", "count")).ok()
		h.server.set(func() {
			h.server.dial = failingDial(&mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Strange, Status: 404, Detail: "404 Not Found", Remedy: "check url"})
		})
		h.server.breakConnection("a", true)
		for range 2 {
			f := h.send(call("a", "count")).fails(messages.CodeUnavailable)
			require.Empty(t, f.Remedy)
			require.Positive(t, f.RetryAfter)
		}
		require.NotContains(t, h.inspect().Servers[0].Cause, "check url")
		h.server.set(func() { h.server.dial = nil })
		time.Sleep(time.Minute) // a probe is due
		h.send(call("a", "count")).ok()
	})
}
