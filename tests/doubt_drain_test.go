package tests

import (
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// inDoubt runs a scenario on a server that has forgotten the session of scope a, and says so in a form that
// needs a control. most has the largest number of sessions that the server has known since then.
func inDoubt(t *testing.T, cfg supervisor.Config, scenario func(h *harness, e *testServer, most *atomic.Int32)) {
	t.Helper()
	overLocalHTTP(t, cfg, newHTTPTools, func(h *harness, e *testServer) {
		require.Equal(h.t, "1", h.send(call("a", "count")).text())
		require.Equal(h.t, 1, e.Expire(refusalOf(h.t, "typescript-sdk 1.24.3, example").Expiry()))
		var most atomic.Int32
		e.Inject("", func(w http.ResponseWriter, r *faults.Request, next http.Handler) {
			next.ServeHTTP(w, r.Request)
			most.Store(max(most.Load(), int32(e.Sessions())))
		})
		scenario(h, e, &most)
		h.stop()
		require.Zero(h.t, e.Sessions(), "no session is left on the server")
	})
}

// A session drains while doubt about it is settled: its calls may finish, and doubt is settled for them.
func TestDoubtOfASessionThatDrainsIsSettledForItsCalls(t *testing.T) {
	for name, drain := range map[string]func(h *harness) (moves bool){
		"evicted": func(h *harness) bool {
			h.send(call("b", "count"))
			return true
		},
		"restarted": func(h *harness) bool {
			h.send(&messages.Restart{Key: keyOf("s", "a")})
			return true
		},
		"closed": func(h *harness) bool {
			h.send(&messages.CloseScope{Scope: "a"})
			return false
		},
	} {
		for at, kind := range map[string]string{"before the refusal": "tools/call", "in the check": "ping", "in the control": "initialize"} {
			t.Run(name+" "+at, func(t *testing.T) {
				inDoubt(t, supervisor.Config{MaxSessions: 1}, func(h *harness, e *testServer, most *atomic.Int32) {
					heal := e.Inject(kind, faults.Delay(100*time.Millisecond))
					began := time.Now()
					doubted := h.send(call("a", "count"))
					time.Sleep(50 * time.Millisecond) // synctest
					moves := drain(h)
					if moves {
						require.EqualValues(h.t, 2, doubted.ok().Generation)
					} else {
						require.False(h.t, doubted.fails(messages.CodeClosed).MayHaveRun)
					}
					require.Less(h.t, time.Since(began), time.Second)
					heal()
					synctest.Wait()
					require.EqualValues(h.t, 1, most.Load(), "at the server")
				})
			})
		}
	}
}

// Doubt that cannot be settled delays neither the call nor the end of its session.
func TestDoubtThatCannotBeSettledDelaysNoDrain(t *testing.T) {
	inDoubt(t, supervisor.Config{}, func(h *harness, e *testServer, _ *atomic.Int32) {
		heal := e.Inject("initialize", faults.Delay(20*time.Second))
		began := time.Now()
		doubted := h.send(call("a", "count"))
		time.Sleep(50 * time.Millisecond) // synctest
		closed := h.send(&messages.CloseScope{Scope: "a"})
		require.True(h.t, doubted.fails(messages.CodeInvalid).MayHaveRun)
		require.LessOrEqual(h.t, time.Since(began), 6*time.Second)
		left := closed.reply().(*messages.Closed).Left
		require.Len(h.t, left, 1)
		require.Contains(h.t, left[0].Reason, "the second session, which was opened to settle doubt: the server has not answered initialize yet")
		require.LessOrEqual(h.t, time.Since(began), 11*time.Second, "the close timeout is over")
		time.Sleep(15 * time.Second) // synctest
		require.Empty(h.t, h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed).Left)
		heal()
		h.send(call("a", "count")).ok()
	})
}

// A second session that is kept for the next dial uses the slot of its key, and that dial needs no permit.
func TestSecondSessionThatIsKeptHasASlot(t *testing.T) {
	cfg := supervisor.Config{MaxSessions: 2, MaxDials: 1}
	inDoubt(t, cfg, func(h *harness, e *testServer, most *atomic.Int32) {
		e.Inject("initialize", faults.Delay(time.Second))
		began := time.Now()
		doubted := h.send(call("a", "count"))
		time.Sleep(50 * time.Millisecond) // synctest
		b, c := h.send(call("b", "count")), h.send(call("c", "count"))
		require.EqualValues(h.t, 2, doubted.ok().Generation)
		require.Less(h.t, time.Since(began), 2*time.Second, "it has not waited for the dials of others")
		b.ok()
		c.ok()
		require.EqualValues(h.t, 2, most.Load())
	})
}

// late is a strategy that waits before each restart.
type late struct{}

func (late) Decider(messages.Key) actors.Decider { return late{} }

func (late) Decide(*actors.Fault, time.Time) actors.Directive {
	return actors.Directive{Delay: 10 * time.Second}
}

// It makes room for others as any session does, while its key waits or when nobody calls it any longer.
func TestSecondSessionThatIsKeptMakesRoom(t *testing.T) {
	for name, patience := range map[string]time.Duration{"its key waits": time.Minute, "its key is not called": time.Second} {
		t.Run(name, func(t *testing.T) {
			inDoubt(t, supervisor.Config{MaxSessions: 1, Strategy: late{}}, func(h *harness, e *testServer, most *atomic.Int32) {
				doubted := h.send(call("a", "count", within(patience)))
				time.Sleep(2 * time.Second) // synctest
				require.Equal(h.t, 1, e.Sessions())
				began := time.Now()
				h.send(call("b", "count")).ok()
				require.Less(h.t, time.Since(began), time.Second)
				if patience == time.Minute {
					require.EqualValues(h.t, 2, doubted.ok().Generation)
				}
				require.EqualValues(h.t, 1, most.Load())
			})
		})
	}
}

// Without anybody who wants room, it ends when its time is over, and its slot is free then.
func TestSecondSessionThatIsNotAdoptedReturnsItsSlot(t *testing.T) {
	inDoubt(t, supervisor.Config{MaxSessions: 1, Strategy: late{}}, func(h *harness, e *testServer, most *atomic.Int32) {
		h.send(call("a", "count", within(time.Second))).reply()
		synctest.Wait()
		require.Equal(h.t, 1, e.Sessions())
		require.Equal(h.t, 1, h.inspect().Open)
		time.Sleep(time.Minute) // synctest
		require.Zero(h.t, e.Sessions())
		require.Zero(h.t, h.inspect().Open)
	})
}
