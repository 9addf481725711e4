package tests

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

func refused(err error) func(context.Context, mcpbridge.DialRequest) error {
	return func(context.Context, mcpbridge.DialRequest) error { return err }
}

// D1: one key at a time probes, and all who wait get through when the server is back.
func TestServerThatIsDownForAWhileHealsWithoutHelp(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		w.send(call("a", "count")).ok()
		w.fake.set(func() { w.fake.dial = refused(unavailable("connection refused")) })
		w.fake.sever("a", true)
		waiting := w.send(call("a", "count"))
		time.Sleep(20 * time.Second) // synctest
		require.False(t, waiting.answered())
		require.Contains(t, w.session("a").Cause, "connection refused")
		require.LessOrEqual(t, time.Until(w.session("a").RetryAt), time.Second)
		w.fake.set(func() { w.fake.dial = nil })
		back := time.Now()
		require.Equal(t, "2", waiting.text())
		require.LessOrEqual(t, time.Since(back), time.Second)
		require.Greater(t, await(w, func(*messages.SessionRestarted) bool { return true }).Elapsed, 20*time.Second, "since the loss")
		happened[*messages.SessionRestarting](w, 1) // it is told once
	})
}

// D2: nobody gives up, and what does not come back is dialed about once a second.
func TestCallsOfAServerThatNeverComesBackGetTheLastCauseAtTheirDeadline(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		w.send(call("a", "count")).ok()
		w.fake.set(func() { w.fake.dial = refused(unavailable("connection refused")) })
		w.fake.sever("a", true)
		began := time.Now()
		for _, p := range w.calls(100, "a", "count") {
			f := p.fails(messages.CodeUnavailable)
			require.Contains(t, f.Detail, "connection refused")
			require.False(t, f.MayHaveRun)
			require.Equal(t, time.Minute, p.answeredAt.Sub(p.sent))
		}
		require.Equal(t, time.Minute, time.Since(began))
		dials := w.watch.dialed()
		require.Less(t, dials, 90)
		require.Zero(t, count[*messages.SessionGaveUp](w))
		time.Sleep(20 * time.Minute) // synctest
		require.Equal(t, dials, w.watch.dialed(), "nobody waits")
		w.fake.set(func() { w.fake.dial = nil })
		began = time.Now()
		require.Equal(t, "2", w.send(call("a", "count")).text())
		require.Zero(t, time.Since(began), "the first call probes at once")
	})
}

// D3
func TestServerThatFlapsIsDialedABoundedNumberOfTimes(t *testing.T) {
	imagine(t, supervisor.Config{}, func(w *world) {
		for i := range 600 {
			if i%2 == 0 {
				w.fake.set(func() { w.fake.dial = nil })
				w.send(call("a", "count")).reply()
			} else {
				w.fake.set(func() { w.fake.dial = refused(unavailable("down")) })
				if w.session("a").State == messages.StateReady {
					w.fake.sever("a", true)
				}
			}
			time.Sleep(time.Second) // synctest
		}
		require.Less(t, w.watch.dialed(), 600, "in ten minutes, of one key that is called all the time")
	})
}

// D4, F2
func TestSessionThatBacksOffServesDeadlinesCancelsAndCloses(t *testing.T) {
	cfg := supervisor.Config{BackoffBase: time.Minute, BackoffMax: time.Minute, CallTimeout: time.Hour}
	imagine(t, cfg, func(w *world) {
		w.send(call("a", "count")).ok()
		busy := &mcpbridge.Error{Class: mcpbridge.RateLimited, Server: mcpbridge.Present, Detail: "429", RetryAfter: time.Minute} // the backoff is not random
		w.fake.set(func() { w.fake.dial = refused(busy) })
		w.fake.sever("a", true)
		cancelled, closed := w.send(call("a", "count")), w.send(call("a", "count"))
		await(w, func(e *messages.SessionRestarting) bool { return e.Attempt == 2 })

		began := time.Now()
		late := w.send(call("a", "count", within(time.Second)))
		require.Contains(t, late.fails(messages.CodeDeadline).Detail, "429")
		require.Equal(t, time.Second, time.Since(began))
		w.cancel(cancelled)
		cancelled.fails(messages.CodeCancelled)
		require.Equal(t, messages.StateWaiting, w.session("a").State)
		require.Equal(t, 1, w.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed).Sessions)
		closed.fails(messages.CodeClosed)
		require.Equal(t, time.Second, time.Since(began))
		require.Empty(t, w.fake.sessions, "the session that was lost is ended too")
	})
}

// D5
func TestManySessionsThatExpireAtOnceAreRebuiltAFewAtATime(t *testing.T) {
	imagine(t, supervisor.Config{MaxSessions: 1000, MaxDials: 8}, func(w *world) {
		scope := func(i int) string { return fmt.Sprint("scope-", i) }
		for i := range 1000 {
			w.send(call(scope(i), "count"))
		}
		synctest.Wait()
		var now, most int
		w.fake.set(func() {
			clear(w.fake.sessions)
			w.fake.dial = func(context.Context, mcpbridge.DialRequest) error {
				w.fake.set(func() { now++; most = max(most, now) })
				time.Sleep(100 * time.Millisecond) // synctest
				w.fake.set(func() { now-- })
				return nil
			}
		})
		for i := range 1000 {
			w.send(call(scope(i), "count"))
		}
		w.mu.Lock()
		all := w.pending
		w.mu.Unlock()
		for i, p := range all {
			require.EqualValues(t, 1+i/1000, p.ok().Generation)
		}
		require.Equal(t, 8, most)
	})
}

// stubborn is a strategy that gives up at the first fault, for an hour.
type stubborn struct{}

func (stubborn) Decider(messages.Key) actors.Decider { return stubborn{} }

func (stubborn) Decide(f *actors.Fault, _ time.Time) actors.Decision {
	return actors.Decision{GiveUp: f.Class != mcpbridge.Expired, Delay: time.Hour}
}

func TestStrategyCanBeReplaced(t *testing.T) {
	imagine(t, supervisor.Config{Strategy: stubborn{}, IdleTimeout: supervisor.Never}, func(w *world) {
		w.send(call("a", "count")).ok()
		w.fake.sever("a", true)
		synctest.Wait()
		require.Equal(t, time.Hour, w.send(call("a", "count")).fails(messages.CodeUnavailable).RetryAfter)
		time.Sleep(time.Hour) // synctest
		require.Equal(t, "2", w.send(call("a", "count")).text())
	})
}

// G2
func TestStrategyThatPanicsIsSurvived(t *testing.T) {
	imagine(t, supervisor.Config{Strategy: panicking{}}, func(w *world) {
		w.send(call("a", "count")).ok()
		w.fake.sever("a", true)
		synctest.Wait()
		require.Equal(t, "2", w.send(call("a", "count")).text())
	})
}

type panicking struct{}

func (panicking) Decider(messages.Key) actors.Decider { return panicking{} }

func (panicking) Decide(*actors.Fault, time.Time) actors.Decision { panic("a hook") }
