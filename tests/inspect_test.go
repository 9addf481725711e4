package tests

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// Inspect lists the sessions that match, up to the limit, and counts all that match.
func TestInspectListsWhatWasAskedForAndCountsTheRest(t *testing.T) {
	cfg := supervisor.Config{Servers: []mcpbridge.Server{{Name: "down", URL: "http://fake.invalid"}}, Budget: 1}
	inFakeTime(t, cfg, func(h *harness) {
		h.server.set(func() { h.server.dial = failingDialOf("down") })
		for i := range 10 {
			h.send(call(fmt.Sprint(i), "count")).ok()
			h.send(call(fmt.Sprint(i), "count", on("other"))).ok()
		}
		for i := range 3 {
			h.send(call(fmt.Sprint(i), "count", on("down"))).reply()
		}
		hang := h.send(call("0", "hang"))
		synctest.Wait()
		h.send(&messages.CloseScope{Scope: "0"})
		synctest.Wait()

		inspect := func(m messages.Inspect) *messages.Snapshot { return h.send(&m).reply().(*messages.Snapshot) }
		keys := func(s *messages.Snapshot) (keys []string) {
			for _, one := range s.Sessions {
				keys = append(keys, fmt.Sprintf("%s %s", one.Key, one.State))
			}
			return keys
		}
		all := inspect(messages.Inspect{})
		require.Len(t, all.Sessions, all.Total)
		require.Equal(t, 1, all.States[messages.StateDraining])
		require.Equal(t, 18, all.States[messages.StateReady])

		require.Equal(t, []string{"s/0 draining"}, keys(inspect(messages.Inspect{State: messages.StateDraining})))
		require.Equal(t, []string{"s/0 draining"}, keys(inspect(messages.Inspect{Scope: "0", State: messages.StateDraining})))
		require.Equal(t, []string{"other/3 ready", "s/3 ready"}, keys(inspect(messages.Inspect{Scope: "3"})))
		require.Equal(t, []string{"s/3 ready"}, keys(inspect(messages.Inspect{Scope: "3", Server: "s"})))
		require.Empty(t, keys(inspect(messages.Inspect{Scope: "nobody"})))
		require.Empty(t, keys(inspect(messages.Inspect{Server: "nobody"})))
		few := inspect(messages.Inspect{Server: "s", Limit: 3})
		require.Equal(t, []string{"s/0 draining", "s/1 ready", "s/2 ready"}, keys(few), "what draws attention comes first")
		require.Equal(t, 10, few.Total)
		require.Equal(t, map[messages.State]int{messages.StateDraining: 1, messages.StateReady: 9}, few.States)
		require.Len(t, inspect(messages.Inspect{Limit: -1}).Sessions, all.Total)
		hang.fails(messages.CodeClosed)
		time.Sleep(10 * time.Second) // synctest
		require.Empty(t, keys(inspect(messages.Inspect{Scope: "0", State: messages.StateReady})))
	})
}

// failingDialOf returns a decision about dials that fails all dials of one server.
func failingDialOf(server string) func(context.Context, dial.Request) error {
	return func(_ context.Context, req dial.Request) error {
		if req.Key.Server == server {
			return unavailableError("down")
		}
		return nil
	}
}

// The number of waiting calls is bounded over all sessions. A call that does not have to
// wait is accepted beyond the bound.
func TestWaitingCallsAreBoundedOverAllSessions(t *testing.T) {
	for name, interceptors := range map[string][]actors.Interceptor{
		"alone":             nil,
		"with interceptors": {func(next actors.Runner) actors.Runner { return next }},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := supervisor.Config{MaxWaitingTotal: 10, MaxInFlight: 2, MaxSessions: 3, Interceptors: interceptors}
			inFakeTime(t, cfg, func(h *harness) {
				h.send(call("warm", "count")).ok()
				for i := range 2 {
					h.calls(2, fmt.Sprint("busy", i), "hang", within(time.Minute))
				}
				synctest.Wait()
				h.send(call("warm", "hang", within(time.Minute)))
				synctest.Wait()
				var waiting []*sentCommand
				for i := range 10 {
					waiting = append(waiting, h.send(call(fmt.Sprint("k", i), "count", within(30*time.Second))))
					synctest.Wait()
				}
				require.Equal(t, 10, h.inspect().Waiting)
				require.Contains(t, h.send(call("one too many", "count")).fails(messages.CodeBusy).Detail, "MaxWaitingTotal")
				require.Nil(t, h.session("one too many"))
				for i, p := range waiting[:5] {
					h.cancel(p)
					p.fails(messages.CodeCancelled)
					synctest.Wait()
					require.Equal(t, 9-i, h.inspect().Waiting)
				}
				waiting = append(waiting, h.send(call("now", "count", within(time.Second))))
				for _, p := range waiting {
					p.reply()
				}
				synctest.Wait()
				require.Zero(t, h.inspect().Waiting)
			})
		})
	}
}

// H-D1: Cancel finds an operation that is in the interceptors by its key and id, among
// others with the same id.
func TestCancelFindsTheOperationsOfItsNameAmongTheInterceptors(t *testing.T) {
	var release chan struct{}
	hold := func(next actors.Runner) actors.Runner {
		return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
			<-release
			return next(ctx, op)
		}
	}
	inFakeTime(t, supervisor.Config{Interceptors: []actors.Interceptor{hold}}, func(h *harness) {
		release = make(chan struct{})
		named := func(scope, id string) *sentCommand {
			op := call(scope, "refuse")
			op.ID = id
			return h.send(op)
		}
		var one, two []*sentCommand
		for range 5 {
			one = append(one, named("a", "1"))
			two = append(two, named("b", "1"), named("a", "2"), named("a", ""))
		}
		synctest.Wait()
		h.cancel(one[0])
		for _, p := range one {
			require.False(t, p.fails(messages.CodeCancelled).MayHaveRun)
		}
		h.cancel(one[0]) // the operation has ended
		h.cancel(two[2]) // the operation has no id
		synctest.Wait()
		for _, p := range two {
			require.False(t, p.answered())
		}
		close(release)
		for _, p := range two {
			p.fails(messages.CodeInvalid)
		}
	})
}

// A burst of cancellations is handled a few at a time. Each one applies to the operations
// that were sent before it, however long it waits.
func TestBurstOfCancellationsReachesAllThatItMeans(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		all := h.calls(1000, "a", "hang")
		synctest.Wait()
		began := time.Now()
		for _, p := range all {
			h.cancel(p)
		}
		last := all[len(all)-1].cmd.(*messages.CallTool)
		again := call("a", "slow")
		again.ID = last.ID // the id of an operation that comes after the cancellation
		answer := h.send(again)
		for _, p := range all {
			p.fails(messages.CodeCancelled)
		}
		require.Less(t, time.Since(began), 100*time.Millisecond)
		require.Equal(t, "done", answer.text())
	})
}

// The load of a server counts its operations: those that run, those that wait, and those
// that have a reply.
func TestInspectShowsTheLoadOfAServer(t *testing.T) {
	inFakeTime(t, supervisor.Config{MaxInFlight: 2}, func(h *harness) {
		h.server.set(func() {
			h.server.dial = func(context.Context, dial.Request) error { time.Sleep(30 * time.Millisecond); return nil } // synctest
		})
		all := h.calls(5, "a", "slow")
		time.Sleep(100 * time.Millisecond) // synctest
		load := h.serverOf("s").Load
		require.Equal(t, 2, load.InFlight)
		require.Equal(t, 3, load.Waiting)
		require.Equal(t, 3, h.session("a").Waiting)
		for _, p := range all {
			p.ok()
		}
		h.send(call("a", "refuse")).fails(messages.CodeInvalid)
		h.send(&messages.CallTool{Header: messages.To("s", "a")}).fails(messages.CodeInvalid)
		h.send(call("a", "hang", within(3*time.Second))).fails(messages.CodeDeadline)
		synctest.Wait()

		load = h.serverOf("s").Load
		require.Zero(t, load.InFlight+load.Waiting)
		require.EqualValues(t, 5, load.Succeeded)
		require.Equal(t, map[messages.Code]uint64{messages.CodeInvalid: 2, messages.CodeDeadline: 1}, load.Failed)
		require.Equal(t, map[string]uint64{"100µs": 1, "2s": 2, "5s": 4}, buckets(load.Durations))
		require.Equal(t, (2*1+2*2+3+3)*time.Second+5*30*time.Millisecond, load.Durations.Sum)
		require.Equal(t, map[string]uint64{"100µs": 2, "50ms": 2, "2s": 2, "5s": 1}, buckets(load.Waits))
		require.Equal(t, map[string]uint64{"50ms": 1}, buckets(load.Dials))
		require.Equal(t, messages.Load{}, h.serverOf("other").Load)
	})
}

// buckets returns the numbers of a histogram that are not 0, by the bound.
func buckets(h messages.Histogram) map[string]uint64 {
	all := map[string]uint64{}
	for i, n := range h.Counts {
		bound, ok := h.Bound(i)
		switch {
		case n == 0:
		case !ok:
			all["more"] = n
		default:
			all[bound.String()] = n
		}
	}
	return all
}

// A call that is run again is an event, and MCP sessions have a lifetime.
func TestReplaysAndLifetimesAreEvents(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.send(call("a", "count")).ok()
		time.Sleep(time.Minute) // synctest
		h.server.expire("a")
		p := h.send(call("a", "count"))
		require.True(t, p.ok().Replayed)
		requireEvents[*messages.CallReplayed](h, 1)
		replayed := firstEvent[*messages.CallReplayed](h)
		require.Equal(t, &messages.CallReplayed{
			Stamp: messages.Stamp{Key: keyOf("s", "a"), Generation: 2, Time: replayed.Time, Supervisor: h.sup.PID().Id},
			ID:    p.ok().ID, Method: "tools/call", Target: "count", Attempt: 2,
		}, replayed)
		require.EqualValues(t, 1, h.inspect().Counters.Replayed)
		require.Equal(t, 1, h.session("a").Restarts)
		require.Equal(t, time.Minute, firstEvent[*messages.SessionRestarted](h).Lifetime, "of the session that expired")

		time.Sleep(time.Hour / 4) // synctest
		h.server.breakConnection("a", true)
		time.Sleep(5 * time.Minute) // synctest
		h.send(call("a", "count")).ok()
		resumed := awaitEvent(h, func(e *messages.SessionRestarted) bool { return e.Attached })
		require.Zero(t, resumed.Lifetime)
		h.send(&messages.CloseScope{Scope: "a"}).reply()
		require.Equal(t, 20*time.Minute, firstEvent[*messages.SessionClosed](h).Lifetime)
	})
}

// firstEvent waits for the first event of a type.
func firstEvent[E messages.Event](h *harness) E {
	h.t.Helper()
	return awaitEvent(h, func(E) bool { return true })
}

// Two supervisors in one actor system publish to one EventStream. Subscribe tells them apart.
func TestSubscribeSelectsTheEventsOfOneSupervisor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		system := actor.NewActorSystem()
		var sups [2]*supervisor.Supervisor
		var seen [2][]messages.Event
		var cancels [2]func()
		for i := range sups {
			sup, err := supervisor.Start(system, dial.Replace(supervisor.Config{
				Servers: []mcpbridge.Server{serverAt("s", "http://fake.invalid")},
			}, newFakeServer()))
			require.NoError(t, err)
			sups[i], cancels[i] = sup, sup.Subscribe(func(e messages.Event) { seen[i] = append(seen[i], e) })
		}
		for i, scope := range []string{"a", "b"} {
			_, err := sups[i].Client().Open(t.Context(), "s", scope)
			require.NoError(t, err)
			synctest.Wait()
			require.Len(t, seen[i], 1)
			stamp := seen[i][0].GetStamp()
			require.Equal(t, messages.Stamp{Key: keyOf("s", scope), Generation: 1, Time: stamp.Time, Supervisor: sups[i].PID().Id}, stamp)
		}
		cancels[0]()
		for i := range sups {
			require.NoError(t, sups[i].Stop(t.Context()))
		}
		cancels[1]()
		require.Len(t, seen[0], 1)
		require.Len(t, seen[1], 2)
		(*supervisor.Supervisor)(nil).Subscribe(nil)()
		time.Sleep(3 * time.Second) // synctest: until Proto.Actor's throttle of dead letters has ended
	})
}
