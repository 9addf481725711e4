package tests

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// Restart under load: each call has one answer, no call fails, and the generation grows by
// one with each restart.
func TestRestartUnderLoadAnswersEachCallAndGrowsTheGeneration(t *testing.T) {
	for name, cfg := range map[string]supervisor.Config{
		"alone":             {MaxInFlight: 4},
		"at the cap":        {MaxInFlight: 4, MaxSessions: 1},
		"with interceptors": {MaxInFlight: 4, Interceptors: []actors.Interceptor{func(next actors.Runner) actors.Runner { return next }}},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, cfg, func(h *harness) {
				var all []*sentCommand
				for i := range 5 {
					all = append(all, h.calls(8, "a", "slow")...)
					synctest.Wait()
					restart := h.send(&messages.Restart{ID: fmt.Sprint(i), Key: keyOf("s", "a")})
					all = append(all, h.calls(8, "a", "slow")...)
					restart.done()
					require.EqualValues(t, i+2, h.session("a").Generation)
				}
				for _, p := range all {
					require.Equal(t, "done", p.text())
				}
				require.Equal(t, 6, h.dials.dialed())
				require.Equal(t, 1, h.dials.mostOpen())
				requireEvents[*messages.SessionClosed](h, 5)
				requireEvents[*messages.SessionOpened](h, 6)
			})
		})
	}
}

// Calls that do not end within the drain timeout are cut off.
func TestRestartWaitsForRunningCallsAsLongAsTheDrainTimeout(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		hang := h.send(call("a", "hang"))
		synctest.Wait()
		began := time.Now()
		h.send(&messages.Restart{Key: keyOf("s", "a")}).done()
		require.InDelta(t, 10, time.Since(began).Seconds(), 0.1)
		require.True(t, hang.fails(messages.CodeClosed).MayHaveRun)
		require.Equal(t, "1", h.send(call("a", "count")).text(), "its state is gone")
	})
}

// The subscriptions, and what else callers have set, are those of the session before.
func TestRestartKeepsTheSettings(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		var subscribed []string
		h.server.set(func() {
			h.server.onSubscription = func(op messages.Operation) {
				subscribed = append(subscribed, op.(*messages.Subscribe).URI)
			}
		})
		h.send(&messages.Subscribe{Header: messages.To("s", "a"), URI: "file:///one"}).reply()
		for range 2 {
			one, two := h.send(&messages.Restart{Key: keyOf("s", "a")}), h.send(&messages.Restart{Key: keyOf("s", "a")})
			two.done()
			one.reply()
		}
		require.GreaterOrEqual(t, h.dials.dialed(), 3)
		require.Len(t, subscribed, h.dials.dialed(), "on each new session")
		h.send(&messages.CloseSession{Key: keyOf("s", "a")}).closed()
		h.send(call("a", "count")).ok()
		require.Len(t, subscribed, h.dials.dialed()-1, "a session that was closed forgets them")
	})
}

// The restart itself takes no place of a call that waits.
func TestRestartOfASessionWithAsManyCallsAsItMayHaveFailsNone(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxInFlight: 1, MaxWaiting: 3}, func(h *harness) {
		h.server.dialsTake(time.Second)
		waiting := h.calls(4, "a", "count")
		h.send(call("a", "count")).fails(messages.CodeBusy)
		h.send(&messages.Restart{Key: keyOf("s", "a")}).done()
		for _, p := range waiting {
			p.ok()
		}
	})
}

// What has no session is not restarted.
func TestRestartOfAKeyWithoutASessionDoesNothing(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(&messages.Restart{Key: keyOf("s", "a")}).done()
		require.Zero(t, h.dials.dialed())
		require.Empty(t, h.inspect().Sessions)
		h.send(&messages.Restart{Key: keyOf("none", "a")}).fails(messages.CodeUnknownServer)
		require.Contains(t, h.send(&messages.Restart{Key: keyOf("s", "\x7f")}).fails(messages.CodeInvalid).Detail, "scope: ")
	})
}

// If the next session cannot be opened, the failure says why. A restart ends a backoff.
func TestRestartSaysWhyTheNextSessionDoesNotOpen(t *testing.T) {
	inFakeTime(t, supervisor.Config{Budget: 1}, func(h *harness) {
		h.send(call("a", "count")).ok()
		refused := &mcpbridge.Error{Class: mcpbridge.Unauthorized, Server: mcpbridge.Present, Detail: "401 Unauthorized"}
		h.server.set(func() { h.server.dial = failingDial(refused) })
		f := h.send(&messages.Restart{ID: "7", Key: keyOf("s", "a")}).fails(messages.CodeUnauthorized)
		require.Equal(t, "7", f.ID)
		require.Equal(t, "Restart", f.Op)
		require.False(t, f.MayHaveRun)
		require.Empty(t, h.server.sessions, "the session before is closed")

		h.server.set(func() { h.server.dial = nil })
		require.Positive(t, h.send(call("a", "count")).fails(messages.CodeUnauthorized).RetryAfter)
		began := time.Now()
		h.send(&messages.Restart{Key: keyOf("s", "a")}).done()
		require.Zero(t, time.Since(began))
		require.EqualValues(t, 2, h.send(call("a", "count")).ok().Generation)
	})
}

// A restart that a close, a stop or a cancellation overtakes is answered.
func TestRestartThatIsOvertakenIsAnswered(t *testing.T) {
	for name, cmd := range map[string]messages.Command{
		"close": &messages.CloseAll{}, "close now": &messages.CloseScope{Scope: "a", Now: true}, "cancel": &messages.CancelScope{Scope: "a"},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, supervisor.Config{}, func(h *harness) {
				hang := h.send(call("a", "hang"))
				synctest.Wait()
				restart := h.send(&messages.Restart{Key: keyOf("s", "a")})
				h.send(cmd).reply()
				require.IsType(t, &messages.Failure{}, restart.reply())
				hang.reply()
				h.send(call("a", "count")).ok()
			})
		})
	}
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.calls(3, "a", "hang")
		synctest.Wait()
		restart := h.send(&messages.Restart{Key: keyOf("s", "a")})
		h.stop()
		restart.fails(messages.CodeClosed)
		h.send(&messages.Restart{Key: keyOf("s", "a")}).fails(messages.CodeClosed)
	})
}

// Restart of a session that dials, or that is evicted.
func TestRestartOfASessionThatIsNotOpen(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.server.dial = func(ctx context.Context, _ dial.Request) error { <-ctx.Done(); return ctx.Err() }
		p := h.send(call("a", "count"))
		synctest.Wait()
		h.server.set(func() { h.server.dial = nil })
		began := time.Now()
		h.send(&messages.Restart{Key: keyOf("s", "a")}).done()
		require.Equal(t, "1", p.text())
		require.Zero(t, time.Since(began))
	})
	inFakeTime(t, supervisor.Config{MaxSessions: 1}, func(h *harness) {
		hang := h.send(call("a", "hang"))
		synctest.Wait()
		other := h.send(call("b", "slow")) // evicts
		synctest.Wait()
		began := time.Now()
		h.send(&messages.Restart{Key: keyOf("s", "a")}).done()
		require.Less(t, time.Since(began), 15*time.Second)
		hang.fails(messages.CodeClosed)
		other.ok()
	})
}

// Restarts that come while one runs share it: their number is bounded, as that of calls.
func TestRestartsAtOnceShareOneSession(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxInFlight: 4, MaxWaiting: 16}, func(h *harness) {
		slow := h.calls(4, "a", "slow")
		synctest.Wait()
		var done, busy int
		var all []*sentCommand
		for range 100 {
			all = append(all, h.send(&messages.Restart{Key: keyOf("s", "a")}))
		}
		for _, p := range all {
			if _, ok := p.reply().(*messages.Done); ok {
				done++
				continue
			}
			p.fails(messages.CodeBusy)
			busy++
		}
		require.Equal(t, 20, done)
		require.Equal(t, 80, busy)
		for _, p := range slow {
			require.Equal(t, "done", p.text())
		}
		require.Equal(t, 2, h.dials.dialed())
		require.EqualValues(t, 2, h.session("a").Generation)
	})
}

// A pin and an owner are those of the key and of the scope, and not of one session.
func TestRestartKeepsThePinAndTheOwner(t *testing.T) {
	for name, interceptors := range map[string][]actors.Interceptor{
		"alone": nil, "with interceptors": {func(next actors.Runner) actors.Runner { return next }},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, supervisor.Config{MaxSessions: 1, IdleTimeout: time.Minute, Interceptors: interceptors}, func(h *harness) {
				who := owner(h)
				bind(h, "a", who)
				h.send(call("a", "count")).ok()
				h.pin("a")
				for range 2 {
					slow := h.send(call("a", "slow"))
					synctest.Wait()
					restart := h.send(&messages.Restart{Key: keyOf("s", "a")})
					pinned := func(s messages.SessionSnapshot) bool { return s.Pinned && s.State == messages.StateWaiting }
					require.True(t, slices.ContainsFunc(h.inspect().Sessions, pinned), "it is that of the next session at once")
					restart.done()
					require.Equal(t, "done", slow.text())
				}
				h.send(call("b", "count")).fails(messages.CodeBusy)
				time.Sleep(10 * time.Minute)
				require.True(t, h.session("a").Pinned)
				require.EqualValues(t, 3, h.session("a").Generation)

				hang := h.send(call("a", "hang"))
				synctest.Wait()
				restart := h.send(&messages.Restart{Key: keyOf("s", "a")})
				synctest.Wait()
				h.system.Root.Stop(who)
				hang.orphaned()
				require.NotEmpty(t, restart.fails(messages.CodeCancelled).Supervisor)
				h.send(call("b", "count")).ok()
				require.False(t, h.isOpen("s", "a"))
			})
		})
	}
}

// So is a handler.
func TestRestartKeepsTheHandlerOfTheScope(t *testing.T) {
	withDesk(t, supervisor.Config{}, func(h *harness, d *desk) {
		ofScope := newDesk(h)
		require.IsType(t, &messages.Bound{}, h.send(&messages.Bind{Scope: "a", Handler: ofScope.pid}).reply())
		h.send(&messages.Open{Header: messages.To("s", "a")}).reply()
		h.send(&messages.Restart{Key: keyOf("s", "a")}).done()
		p := h.send(call("a", "ask"))
		ofScope.question().accept()
		require.Equal(t, "accept", p.text())
		require.EqualValues(t, 2, h.session("a").Generation)
		h.system.Root.Stop(ofScope.pid)
	})
}

// The process is another one.
func TestRestartStartsAnotherProcess(t *testing.T) {
	overStdio(t, "", supervisor.Config{}, func(h *harness) {
		before := pid(t, h.send(call("a", "pid")))
		h.send(&messages.Restart{Key: keyOf("s", "a")}).done()
		requireExit(t, before)
		require.NotEqual(t, before, pid(t, h.send(call("a", "pid"))))
	})
}
