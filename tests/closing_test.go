package tests

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// E1
func TestLeastRecentlyUsedIdleSessionMakesRoom(t *testing.T) {
	imagine(t, supervisor.Config{MaxSessions: 3}, func(w *world) {
		busy := w.send(call("busy", "slow"))
		for _, scope := range []string{"a", "b", "a"} {
			w.send(call(scope, "count")).ok()
		}
		w.send(call("c", "count")).ok()
		e := await(w, func(*messages.SessionEvicted) bool { return true })
		require.Equal(t, "b", e.Key.Scope)
		require.Equal(t, messages.EvictCap, e.Reason)
		require.Equal(t, "done", busy.text())
		require.EqualValues(t, 2, w.send(call("b", "count")).ok().Generation, "its state is gone")
		require.Equal(t, 3, w.watch.most)
	})
}

// E2
func TestBusySessionIsEvictedByDrainingAndNothingIsCut(t *testing.T) {
	imagine(t, supervisor.Config{MaxSessions: 2}, func(w *world) {
		first, second := w.calls(10, "a", "slow"), w.calls(10, "b", "slow")
		synctest.Wait()
		began := time.Now()
		next := w.send(call("c", "count"))
		require.Equal(t, "1", next.text())
		require.Equal(t, time.Second, time.Since(began))
		for _, p := range append(first, second...) {
			require.Equal(t, "done", p.text())
		}
		require.Equal(t, 2, w.watch.most)
	})
}

// E2
func TestCallThatGetsNoSlotIsBusyAtItsDeadline(t *testing.T) {
	imagine(t, supervisor.Config{MaxSessions: 1}, func(w *world) {
		hang := w.send(call("a", "hang", within(30*time.Second)))
		synctest.Wait()
		began := time.Now()
		f := w.send(call("b", "count", within(5*time.Second))).fails(messages.CodeBusy)
		require.Contains(t, f.Detail, "MaxSessions")
		require.Equal(t, 5*time.Second, time.Since(began))
		hang.fails(messages.CodeDeadline)
	})
}

// E2: what waits in a session that is evicted moves to its successor.
func TestCallsThatWaitInAnEvictedSessionRunInItsSuccessor(t *testing.T) {
	imagine(t, supervisor.Config{MaxSessions: 1, MaxInFlight: 1}, func(w *world) {
		all := w.calls(3, "a", "slow")
		synctest.Wait()
		other := w.send(call("b", "count"))
		for i, p := range all {
			require.EqualValues(t, 1+min(i, 1), p.ok().Generation)
		}
		require.Equal(t, "1", other.text())
	})
}

// E3
func TestKeyThatIsCalledWhileItsSessionClosesGetsASuccessorAfterwards(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		w.send(call("a", "count")).ok()
		w.fake.set(func() {
			w.fake.close = func(context.Context, messages.Key) error { time.Sleep(3 * time.Second); return nil }
		}) // synctest
		closed := w.send(&messages.CloseScope{Scope: "a"})
		synctest.Wait()
		began := time.Now()
		r := w.send(call("a", "count"))
		require.Equal(t, "1", r.text())
		require.EqualValues(t, 2, r.ok().Generation)
		require.Equal(t, 3*time.Second, time.Since(began))
		require.Equal(t, 1, closed.reply().(*messages.Closed).Sessions)
	})
}

// E4
func TestIdleSessionIsClosedAfterTheIdleTimeoutAndNotBefore(t *testing.T) {
	imagine(t, supervisor.Config{IdleTimeout: time.Minute}, func(w *world) {
		w.send(call("a", "count")).ok()
		time.Sleep(30 * time.Second) // synctest
		w.send(call("b", "count")).ok()
		time.Sleep(30*time.Second - 1) // synctest
		require.NotNil(t, w.session("a"))
		time.Sleep(2 * time.Nanosecond) // synctest
		require.Nil(t, w.session("a"))
		require.NotNil(t, w.session("b"))
		time.Sleep(30*time.Second - 2) // synctest: at the very edge
		require.Equal(t, "2", w.send(call("b", "count")).text())
		e := await(w, func(*messages.SessionEvicted) bool { return true })
		require.Equal(t, messages.EvictIdle, e.Reason)
		slow := w.send(call("c", "hang", within(90*time.Second)))
		slow.fails(messages.CodeDeadline)
		time.Sleep(2 * time.Minute) // synctest
		require.Empty(t, w.inspect().Sessions)
	})
}

// E5
func TestClosingAnswersEachCallAndEndsEachSession(t *testing.T) {
	imagine(t, supervisor.Config{MaxInFlight: 5}, func(w *world) {
		var slow, waiting []*pending
		for i := range 4 {
			scope := fmt.Sprint("scope-", i%2)
			slow = append(slow, w.calls(5, scope, "slow", on([]string{"s", "other"}[i/2]))...)
			waiting = append(waiting, w.calls(2, scope, "slow", on([]string{"s", "other"}[i/2]))...)
		}
		synctest.Wait()
		require.Equal(t, 2, w.send(&messages.CloseScope{Scope: "scope-0"}).reply().(*messages.Closed).Sessions)
		require.Equal(t, 1, w.send(&messages.CloseServer{Server: "s"}).reply().(*messages.Closed).Sessions)
		require.Equal(t, 1, w.send(&messages.CloseAll{}).reply().(*messages.Closed).Sessions)
		again := w.send(&messages.CloseAll{}).reply().(*messages.Closed)
		require.Zero(t, again.Sessions)
		require.Empty(t, again.Left)
		for _, p := range slow {
			require.Equal(t, "done", p.text())
		}
		refused := 0
		for _, p := range waiting {
			if f, is := p.reply().(*messages.Failure); is {
				require.ErrorIs(t, f, messages.ErrClosed)
				require.False(t, f.MayHaveRun)
				refused++
			}
		}
		require.Positive(t, refused)
		require.Empty(t, w.fake.sessions)
		require.Empty(t, w.inspect().Sessions)
	})
}

// E5: two at once
func TestTwoClosesAtOnceAreBothAnswered(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		hang := w.send(call("a", "hang"))
		synctest.Wait()
		began := time.Now()
		one, two := w.send(&messages.CloseScope{Scope: "a"}), w.send(&messages.CloseAll{})
		require.Empty(t, one.reply().(*messages.Closed).Left)
		require.Empty(t, two.reply().(*messages.Closed).Left)
		require.True(t, hang.fails(messages.CodeClosed).MayHaveRun)
		require.InDelta(t, 10, time.Since(began).Seconds(), 0.1)
	})
}

// E6
func TestCloseThatFailedSaysWhatIsLeftAndCanBeTriedAgain(t *testing.T) {
	for name, failing := range map[string]func(context.Context, messages.Key) error{
		"refused": func(context.Context, messages.Key) error { return errors.New("500 Internal Server Error") },
		"hangs":   func(ctx context.Context, _ messages.Key) error { <-ctx.Done(); return ctx.Err() },
		"panics":  func(context.Context, messages.Key) error { panic("a hook") },
	} {
		t.Run(name, func(t *testing.T) {
			imagine(t, supervisor.Config{}, func(w *world) {
				w.send(call("a", "count")).ok()
				w.fake.set(func() { w.fake.close = failing })
				began := time.Now()
				closed := w.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed)
				require.Zero(t, closed.Sessions)
				require.Len(t, closed.Left, 1)
				require.Equal(t, "a", closed.Left[0].Key.Scope)
				require.LessOrEqual(t, time.Since(began), 6*time.Second)
				w.fake.set(func() { w.fake.close = nil })
				closed = w.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed)
				require.Equal(t, 1, closed.Sessions)
				require.Empty(t, closed.Left)
				require.Empty(t, w.fake.sessions)
			})
		})
	}
}

// E8
func TestStopReturnsAtTheEndOfItsContextAndSaysWhatIsLeft(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		release := make(chan struct{})
		w.send(call("closes", "count")).ok()
		w.fake.set(func() {
			w.fake.dial = func(_ context.Context, req mcpbridge.DialRequest) error {
				if req.Key.Scope == "dials" {
					<-release
				}
				return nil
			}
			w.fake.close = func(context.Context, messages.Key) error { <-release; return nil }
		})
		dials, hangs := w.send(call("dials", "count")), w.send(call("calls", "stuck"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(w.t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := w.sup.Stop(ctx)
		require.Equal(t, time.Second, time.Since(began))
		var stop *supervisor.StopError
		require.ErrorAs(t, err, &stop)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, stop.Left, 3)
		w.send(call("late", "count")).fails(messages.CodeDraining)
		dials.fails(messages.CodeClosed)
		close(release)
		hangs.fails(messages.CodeClosed)
		require.NoError(t, w.sup.Stop(w.t.Context()), "another Stop waits for the rest")
	})
}

// A supervisor whose actor is stopped from outside still answers and closes.
func TestSupervisorThatIsStoppedFromOutsideAnswersAndClosesEverything(t *testing.T) {
	imagine(t, supervisor.Config{MaxInFlight: 1}, func(w *world) {
		w.strict = false // its own messages to itself may come too late
		w.fake.dial = slowly(time.Second, nil)
		dialing := w.calls(10, "dialing", "count")
		w.fake.set(func() { w.fake.dial = nil })
		running := w.calls(10, "running", "hang")
		synctest.Wait()
		last := w.calls(10, "last", "count")
		w.system.Root.Stop(w.sup.PID())
		for _, p := range append(append(dialing, running...), last...) {
			p.reply()
		}
		require.NoError(t, w.sup.Stop(w.t.Context()))
		time.Sleep(10 * time.Second) // synctest
	})
}
