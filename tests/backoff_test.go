package tests

import (
	"context"
	"fmt"
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

func failingDial(err error) func(context.Context, dial.Request) error {
	return func(context.Context, dial.Request) error { return err }
}

// D1: one key at a time probes, and all waiting calls are answered when the server is back.
func TestServerThatIsDownForAWhileHealsWithoutHelp(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(call("a", "count")).ok()
		h.server.set(func() { h.server.dial = failingDial(unavailableError("connection refused")) })
		h.server.breakConnection("a", true)
		waiting := h.send(call("a", "count"))
		time.Sleep(20 * time.Second) // synctest
		require.False(t, waiting.answered())
		require.Contains(t, h.session("a").Cause, "connection refused")
		require.LessOrEqual(t, time.Until(h.session("a").RetryAt), time.Second)
		h.server.set(func() { h.server.dial = nil })
		back := time.Now()
		require.Equal(t, "2", waiting.text())
		require.LessOrEqual(t, time.Since(back), time.Second)
		require.Greater(t, awaitEvent(h, func(*messages.SessionRestarted) bool { return true }).Elapsed, 20*time.Second, "since the loss")
		requireEvents[*messages.SessionRestarting](h, 1) // only one event
	})
}

// The time that a restart took is that for which somebody waited: a session that nobody wants is
// opened when it is called again.
func TestRestartTakesNoLongerThanSomebodyWaitedForIt(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(call("a", "count")).ok()
		h.server.breakConnection("a", true)
		time.Sleep(20 * time.Second) // synctest
		h.send(call("a", "count")).ok()
		require.Less(t, awaitEvent(h, func(*messages.SessionRestarted) bool { return true }).Elapsed, time.Second)
	})
}

// D2: no session gives up, and a server that stays down is dialed about once a second.
func TestCallsOfAServerThatNeverComesBackGetTheLastCauseAtTheirDeadline(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(call("a", "count")).ok()
		h.server.set(func() { h.server.dial = failingDial(unavailableError("connection refused")) })
		h.server.breakConnection("a", true)
		began := time.Now()
		for _, p := range h.calls(100, "a", "count") {
			f := p.fails(messages.CodeUnavailable)
			require.Contains(t, f.Detail, "connection refused")
			require.False(t, f.MayHaveRun)
			require.Equal(t, time.Minute, p.answeredAt.Sub(p.sent))
		}
		require.Equal(t, time.Minute, time.Since(began))
		dials := h.dials.dialed()
		require.Less(t, dials, 90)
		require.Zero(t, countEvents[*messages.SessionGaveUp](h))
		time.Sleep(20 * time.Minute) // synctest
		require.Equal(t, dials, h.dials.dialed(), "nobody waits")
		h.server.set(func() { h.server.dial = nil })
		began = time.Now()
		require.Equal(t, "2", h.send(call("a", "count")).text())
		require.Zero(t, time.Since(began), "the first call probes at once")
	})
}

// D3: each dial succeeds, and the connection breaks at once. The key is called all the time. The delays are random, of
// 1.5 s on average.
func TestServerThatFlapsIsDialedABoundedNumberOfTimes(t *testing.T) {
	const most = 500 // in ten minutes
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		var p *sentCommand
		for end := time.Now().Add(10 * time.Minute); time.Now().Before(end) && h.dials.dialed() <= most; {
			if p == nil || p.answered() {
				p = h.send(call("a", "hang", replay(messages.ReplayNever)))
			}
			time.Sleep(50 * time.Millisecond) // synctest
			synctest.Wait()
			if h.session("a").State == messages.StateReady {
				h.server.breakConnection("a", true)
			}
		}
		require.LessOrEqual(t, h.dials.dialed(), most)
		require.Greater(t, h.dials.dialed(), 300)
		h.send(&messages.CloseScope{Scope: "a"}).reply()
	})
}

// D4, F2
func TestSessionThatBacksOffServesDeadlinesCancelsAndCloses(t *testing.T) {
	cfg := supervisor.Config{BackoffBase: time.Minute, BackoffMax: time.Minute, CallTimeout: time.Hour}
	inFakeTime(t, cfg, func(h *harness) {
		h.send(call("a", "count")).ok()
		busy := &mcpbridge.Error{Class: mcpbridge.RateLimited, Server: mcpbridge.Present, Detail: "429", RetryAfter: time.Minute} // RetryAfter makes the delay exact
		h.server.set(func() { h.server.dial = failingDial(busy) })
		h.server.breakConnection("a", true)
		cancelled, closed := h.send(call("a", "count")), h.send(call("a", "count"))
		awaitEvent(h, func(e *messages.SessionRestarting) bool { return e.Attempt == 2 })

		began := time.Now()
		late := h.send(call("a", "count", within(time.Second)))
		require.Contains(t, late.fails(messages.CodeDeadline).Detail, "429")
		require.Equal(t, time.Second, time.Since(began))
		h.cancel(cancelled)
		cancelled.fails(messages.CodeCancelled)
		require.Equal(t, messages.StateWaiting, h.session("a").State)
		require.Equal(t, 1, h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed).Sessions)
		closed.fails(messages.CodeClosed)
		require.Equal(t, time.Second, time.Since(began))
		require.Empty(t, h.server.sessions, "the session that was lost is ended too")
	})
}

// D5
func TestManySessionsThatExpireAtOnceAreRebuiltAFewAtATime(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 1000, MaxDials: 8}, func(h *harness) {
		scope := func(i int) string { return fmt.Sprint("scope-", i) }
		for i := range 1000 {
			h.send(call(scope(i), "count"))
		}
		synctest.Wait()
		var now, most int
		h.server.set(func() {
			clear(h.server.sessions)
			h.server.dial = func(context.Context, dial.Request) error {
				h.server.set(func() { now++; most = max(most, now) })
				time.Sleep(100 * time.Millisecond) // synctest
				h.server.set(func() { now-- })
				return nil
			}
		})
		for i := range 1000 {
			h.send(call(scope(i), "count"))
		}
		h.mu.Lock()
		all := h.pending
		h.mu.Unlock()
		for i, p := range all {
			require.EqualValues(t, 1+i/1000, p.ok().Generation)
		}
		require.Equal(t, 8, most)
	})
}

// givesUpAtOnce is a strategy that gives up for an hour at the first fault that is not an
// expiry.
type givesUpAtOnce struct{}

func (givesUpAtOnce) Decider(messages.Key) actors.Decider { return givesUpAtOnce{} }

func (givesUpAtOnce) Decide(f *actors.Fault, _ time.Time) actors.Directive {
	return actors.Directive{GiveUp: f.Class != mcpbridge.Expired, Delay: time.Hour}
}

func TestStrategyCanBeReplaced(t *testing.T) {
	inFakeTime(t, supervisor.Config{Strategy: givesUpAtOnce{}, IdleTimeout: -1}, func(h *harness) {
		h.send(call("a", "count")).ok()
		h.server.breakConnection("a", true)
		synctest.Wait()
		require.Equal(t, time.Hour, h.send(call("a", "count")).fails(messages.CodeUnavailable).RetryAfter)
		time.Sleep(time.Hour) // synctest
		require.Equal(t, "2", h.send(call("a", "count")).text())
	})
}

// G2
func TestStrategyThatPanicsIsSurvived(t *testing.T) {
	inFakeTime(t, supervisor.Config{Strategy: panickingStrategy{}}, func(h *harness) {
		h.send(call("a", "count")).ok()
		h.server.breakConnection("a", true)
		synctest.Wait()
		require.Equal(t, "2", h.send(call("a", "count")).text())
	})
}

type panickingStrategy struct{}

func (panickingStrategy) Decider(messages.Key) actors.Decider { return panickingStrategy{} }

func (panickingStrategy) Decide(*actors.Fault, time.Time) actors.Directive { panic("a hook") }
