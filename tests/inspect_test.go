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

// Inspect lists the sessions that match, up to the limit, and counts all that match.
func TestInspectListsWhatWasAskedForAndCountsTheRest(t *testing.T) {
	cfg := supervisor.Config{Servers: []mcpbridge.Server{{Name: "down", URL: "http://fake.invalid"}}, Budget: -1}
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
func failingDialOf(server string) func(context.Context, mcpbridge.DialRequest) error {
	return func(_ context.Context, req mcpbridge.DialRequest) error {
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
