package tests

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// E1
func TestLeastRecentlyUsedIdleSessionMakesRoom(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 3}, func(h *harness) {
		busy := h.send(call("busy", "slow"))
		synctest.Wait()
		for _, scope := range []string{"a", "b", "a"} {
			h.send(call(scope, "count")).ok()
		}
		h.send(call("c", "count")).ok()
		e := awaitEvent(h, func(*messages.SessionEvicted) bool { return true })
		require.Equal(t, "b", e.Key.Scope)
		require.Equal(t, messages.EvictCap, e.Reason)
		require.Equal(t, "done", busy.text())
		require.EqualValues(t, 2, h.send(call("b", "count")).ok().Generation, "its state is gone")
		require.Equal(t, 3, h.dials.most)
	})
}

// E2
func TestBusySessionIsEvictedByDrainingAndNothingIsCut(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 2}, func(h *harness) {
		first, second := h.calls(10, "a", "slow"), h.calls(10, "b", "slow")
		synctest.Wait()
		began := time.Now()
		next := h.send(call("c", "count"))
		require.Equal(t, "1", next.text())
		require.Equal(t, time.Second, time.Since(began))
		for _, p := range append(first, second...) {
			require.Equal(t, "done", p.text())
		}
		require.Equal(t, 2, h.dials.most)
	})
}

// E2
func TestLeastRecentlyUsedBusySessionMakesRoomIfAllAreBusy(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 2}, func(h *harness) {
		var busy []*sentCommand
		for _, scope := range []string{"a", "b", "a"} {
			busy = append(busy, h.send(call(scope, "slow")))
			synctest.Wait()
		}
		require.Equal(t, "1", h.send(call("c", "count")).text())
		e := awaitEvent(h, func(*messages.SessionEvicted) bool { return true })
		require.Equal(t, "b", e.Key.Scope)
		for _, p := range busy {
			require.Equal(t, "done", p.text())
		}
	})
}

// E2
func TestCallThatGetsNoSlotIsBusyAtItsDeadline(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 1}, func(h *harness) {
		hang := h.send(call("a", "hang", within(30*time.Second)))
		synctest.Wait()
		began := time.Now()
		f := h.send(call("b", "count", within(5*time.Second))).fails(messages.CodeBusy)
		require.Contains(t, f.Detail, "MaxSessions")
		require.Equal(t, 5*time.Second, time.Since(began))
		hang.fails(messages.CodeDeadline)
	})
}

// E2: calls that wait in an evicted session move to its successor.
func TestCallsThatWaitInAnEvictedSessionRunInItsSuccessor(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxSessions: 1, MaxInFlight: 1}, func(h *harness) {
		all := h.calls(3, "a", "slow")
		synctest.Wait()
		other := h.send(call("b", "count"))
		for i, p := range all {
			require.EqualValues(t, 1+min(i, 1), p.ok().Generation)
		}
		require.Equal(t, "1", other.text())
	})
}

// E3
func TestKeyThatIsCalledWhileItsSessionClosesGetsASuccessorAfterwards(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(call("a", "count")).ok()
		h.server.set(func() {
			h.server.close = func(context.Context, messages.Key) error { time.Sleep(3 * time.Second); return nil }
		}) // synctest
		closed := h.send(&messages.CloseScope{Scope: "a"})
		synctest.Wait()
		began := time.Now()
		r := h.send(call("a", "count"))
		require.Equal(t, "1", r.text())
		require.EqualValues(t, 2, r.ok().Generation)
		require.Equal(t, 3*time.Second, time.Since(began))
		require.Equal(t, 1, closed.reply().(*messages.Closed).Sessions)
	})
}

// E4
func TestIdleSessionIsClosedAfterTheIdleTimeoutAndNotBefore(t *testing.T) {
	inFakeTime(t, supervisor.Config{IdleTimeout: time.Minute}, func(h *harness) {
		h.send(call("a", "count")).ok()
		time.Sleep(30 * time.Second) // synctest
		h.send(call("b", "count")).ok()
		time.Sleep(30*time.Second - 1) // synctest
		require.NotNil(t, h.session("a"))
		time.Sleep(2 * time.Nanosecond) // synctest
		require.Nil(t, h.session("a"))
		require.NotNil(t, h.session("b"))
		time.Sleep(30*time.Second - 2) // synctest: 2 ns before the idle timeout
		require.Equal(t, "2", h.send(call("b", "count")).text())
		e := awaitEvent(h, func(*messages.SessionEvicted) bool { return true })
		require.Equal(t, messages.EvictIdle, e.Reason)
		slow := h.send(call("c", "hang", within(90*time.Second)))
		slow.fails(messages.CodeDeadline)
		time.Sleep(2 * time.Minute) // synctest
		require.Empty(t, h.inspect().Sessions)
	})
}

// E5
func TestClosingAnswersEachCallAndEndsEachSession(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxInFlight: 5}, func(h *harness) {
		var slow, waiting []*sentCommand
		for i := range 4 {
			scope := fmt.Sprint("scope-", i%2)
			slow = append(slow, h.calls(5, scope, "slow", on([]string{"s", "other"}[i/2]))...)
			waiting = append(waiting, h.calls(2, scope, "slow", on([]string{"s", "other"}[i/2]))...)
		}
		synctest.Wait()
		require.Equal(t, 2, h.send(&messages.CloseScope{Scope: "scope-0"}).reply().(*messages.Closed).Sessions)
		require.Equal(t, 1, h.send(&messages.CloseServer{Server: "s"}).reply().(*messages.Closed).Sessions)
		require.Equal(t, 1, h.send(&messages.CloseAll{}).reply().(*messages.Closed).Sessions)
		again := h.send(&messages.CloseAll{}).reply().(*messages.Closed)
		require.Zero(t, again.Sessions)
		require.Empty(t, again.Left)
		for _, p := range slow {
			require.Equal(t, "done", p.text())
		}
		refused := 0
		for _, p := range waiting {
			if f, is := p.reply().(*messages.Failure); is {
				require.ErrorIs(t, f, messages.CodeClosed)
				require.False(t, f.MayHaveRun)
				refused++
			}
		}
		require.Positive(t, refused)
		require.Empty(t, h.server.sessions)
		require.Empty(t, h.inspect().Sessions)
	})
}

// E5: two closes at the same time
func TestTwoClosesAtOnceAreBothAnswered(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		hang := h.send(call("a", "hang"))
		synctest.Wait()
		began := time.Now()
		one, two := h.send(&messages.CloseScope{Scope: "a"}), h.send(&messages.CloseAll{})
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
			inFakeTime(t, supervisor.Config{}, func(h *harness) {
				h.send(call("a", "count")).ok()
				h.server.set(func() { h.server.close = failing })
				began := time.Now()
				closed := h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed)
				require.Zero(t, closed.Sessions)
				require.Len(t, closed.Left, 1)
				require.Equal(t, "a", closed.Left[0].Key.Scope)
				require.LessOrEqual(t, time.Since(began), 6*time.Second)
				h.server.set(func() { h.server.close = nil })
				closed = h.send(&messages.CloseScope{Scope: "a"}).reply().(*messages.Closed)
				require.Equal(t, 1, closed.Sessions)
				require.Empty(t, closed.Left)
				require.Empty(t, h.server.sessions)
			})
		})
	}
}

// E8
func TestStopReturnsAtTheEndOfItsContextAndSaysWhatIsLeft(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		release := make(chan struct{})
		h.send(call("closes", "count")).ok()
		h.server.set(func() {
			h.server.dial = func(_ context.Context, req dial.Request) error {
				if req.Key.Scope == "dials" {
					<-release
				}
				return nil
			}
			h.server.close = func(context.Context, messages.Key) error { <-release; return nil }
		})
		dials, hangs := h.send(call("dials", "count")), h.send(call("calls", "stuck"))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(h.t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		err := h.sup.Stop(ctx)
		require.Equal(t, time.Second, time.Since(began))
		var stop *supervisor.StopError
		require.ErrorAs(t, err, &stop)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Len(t, stop.Left, 3)
		h.send(call("late", "count")).fails(messages.CodeDraining)
		dials.fails(messages.CodeClosed)
		close(release)
		hangs.fails(messages.CodeClosed)
		require.NoError(t, h.sup.Stop(h.t.Context()), "another Stop waits for the rest")
	})
}

// Stop returns although a function of the configuration, which must not block, blocks the registry.
func TestStopReturnsThoughTheTenantFunctionBlocks(t *testing.T) {
	var blocks atomic.Bool
	release := lazyChannel()
	tenant := func(key messages.Key) string {
		if blocks.Load() {
			<-release()
		}
		return key.Scope
	}
	inFakeTime(t, supervisor.Config{Tenant: tenant, MaxSessionsPerTenant: 1}, func(h *harness) {
		h.send(call("a", "count")).ok()
		blocks.Store(true)
		waits := h.send(call("b", "count"))
		ctx, cancel := context.WithTimeout(h.t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		require.ErrorIs(h.t, h.sup.Stop(ctx), context.DeadlineExceeded)
		require.LessOrEqual(h.t, time.Since(began), 2*time.Second)
		close(release())
		waits.reply()
	})
}

// A supervisor whose registry is stopped from outside still answers all commands at once, and closes
// all sessions.
func TestSupervisorThatIsStoppedFromOutsideAnswersAndClosesEverything(t *testing.T) {
	store := &hungStore{}
	inFakeTime(t, supervisor.Config{MaxInFlight: 1, Store: store}, func(h *harness) {
		h.strict = false // messages of the registry to itself may become dead letters
		read := make(chan struct{})
		h.system.Root.Send(h.pid, &protocol.Cluster{Owns: func(key messages.Key) bool {
			if key.Scope == "last" {
				<-read // holds the registry up
			}
			return true
		}})
		h.server.dial = slowDial(time.Second, nil)
		dialing := h.calls(10, "dialing", "count")
		synctest.Wait()
		h.server.set(func() { h.server.dial = nil })
		running := h.calls(10, "running", "hang")
		synctest.Wait()
		store.hangs.Store(true)
		closing := h.send(&messages.CloseScope{Scope: "running"}) // waits for the call that runs, and for the store
		synctest.Wait()
		last := h.calls(10, "last", "count")
		synctest.Wait() // the registry reads the first of them
		began := time.Now()
		h.system.Root.Stop(h.sup.PID())
		read <- struct{}{}
		synctest.Wait() // it stops, and reads the second, unless its sessions end before that
		close(read)     // it has stopped, and reads no other
		if f := last[1].reply().(*messages.Failure); f.Code != messages.CodeDraining {
			require.ErrorIs(t, f, messages.CodeClosed)
		}
		for _, p := range slices.Concat(dialing, running, last[:1], last[2:]) {
			p.fails(messages.CodeClosed)
		}
		require.IsType(t, &messages.Closed{}, closing.reply())
		require.Zero(t, time.Since(began))
		require.NoError(t, h.sup.Stop(h.t.Context()))
		time.Sleep(10 * time.Second) // synctest
	})
}
