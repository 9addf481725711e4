package tests

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// Over HTTP, protocol 2026-07-28 has no sessions: nothing expires. What is left is one reply to each call, and no call that
// runs twice by accident, although the protocol tells clients to send a lost request again.

// B11: the server restarts, and there is nothing that it could have forgotten.
func TestNothingExpiresWhereThereAreNoSessions(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{}, newStatelessTools, func(h *harness, e *testServer) {
		require.True(t, h.send(&messages.Open{Header: messages.To("s", "a")}).reply().(*messages.SessionInfo).Stateless)
		for range 3 {
			h.send(call("a", "count")).ok()
			require.NoError(t, e.Restart())
		}
		p := h.send(call("a", "count"))
		require.EqualValues(t, 1, p.ok().Generation)
		require.False(t, p.ok().Replayed)
		require.Equal(t, 1, h.dials.dialed())
		require.Zero(t, countEvents[*messages.SessionExpired](h))
	})
}

// C16: the answer is lost, and nobody knows whether the call has run.
func TestLostCallIsSentAgainWhereThereAreNoSessionsOnlyIfThatIsSafe(t *testing.T) {
	for name, fault := range map[string]faults.Fault{"the answer breaks off": faults.CutAnswer(0), "the connection breaks": faults.Cut()} {
		t.Run(name, func(t *testing.T) {
			overLocalHTTP(t, supervisor.Config{}, newStatelessTools, func(h *harness, e *testServer) {
				h.send(&messages.ListTools{Header: messages.To("s", "a")}).reply()
				e.Inject("tools/call", faults.Times(1, fault))
				p := h.send(call("a", "count"))
				require.True(t, p.fails(messages.CodeLost).MayHaveRun)
				require.LessOrEqual(t, h.executed()[p.cmd.RequestID()], 1)

				e.Inject("tools/call", faults.Times(1, fault))
				safe := h.send(call("a", "count/ro"))
				require.True(t, safe.ok().Replayed)
				require.LessOrEqual(t, h.executed()[safe.cmd.RequestID()], 2)
				h.send(call("a", "count")).ok()
			})
		})
	}
}

// C17: the server hangs, or is away: each call has one reply in time.
func TestEachCallHasOneReplyWhereThereAreNoSessions(t *testing.T) {
	overLocalHTTP(t, supervisor.Config{}, newStatelessTools, func(h *harness, e *testServer) {
		h.send(call("a", "count")).ok()
		remove := e.Inject("tools/call", faults.Hang())
		p := h.send(call("a", "count", within(5*time.Second)))
		require.True(t, p.fails(messages.CodeDeadline).MayHaveRun)
		require.Equal(t, 5*time.Second, p.answeredAt.Sub(p.sent))
		remove()

		e.Stop()
		waiting := h.send(call("a", "count", within(30*time.Second)))
		brief := h.send(call("a", "count", within(2*time.Second)))
		require.False(t, brief.fails(messages.CodeUnavailable).MayHaveRun)
		time.Sleep(3 * time.Second)
		require.NoError(t, e.Start())
		waiting.ok()
		require.Less(t, waiting.answeredAt.Sub(waiting.sent), 9*time.Second)
		require.Equal(t, 1, h.executed()[waiting.cmd.RequestID()])
	})
}

// A call is cancelled when a part of its answer has arrived. Its session, and the other calls of it, are not concerned.
func TestCallThatIsCancelledWhileItsAnswerArrivesBreaksNothing(t *testing.T) {
	stuck := func(w http.ResponseWriter, r *faults.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"jsonrpc":"2.0",`)
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	overLocalHTTP(t, supervisor.Config{}, newStatelessTools, func(h *harness, e *testServer) {
		h.send(call("a", "count")).ok()
		other := h.send(call("a", "wait"))
		time.Sleep(time.Second)
		e.Inject("tools/call", faults.Times(1, stuck))
		p := h.send(call("a", "count", within(2*time.Second)))
		p.fails(messages.CodeDeadline)
		time.Sleep(time.Second)
		e.Release()
		other.ok()
		require.Zero(t, countEvents[*messages.SessionLost](h))
		require.Equal(t, 1, h.dials.dialed())
	})
}
