package tests

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// listNeverAnswered is a tools/list that is never answered.
func listNeverAnswered(ctx context.Context) error {
	<-ctx.Done()
	return &mcpbridge.Error{Class: mcpbridge.Deadline, Sent: true}
}

// H-A4: a lost call is answered in time, also if the annotations of its tool do not arrive.
func TestLostCallDoesNotWaitLongForTheAnnotationsOfItsTool(t *testing.T) {
	for name, one := range map[string]struct {
		list     func(context.Context) error
		deadline time.Duration // of the call
		answered time.Duration
	}{
		"the listing hangs":               {listNeverAnswered, time.Minute, 500 * time.Millisecond},
		"the deadline comes first":        {listNeverAnswered, 400 * time.Millisecond, 400 * time.Millisecond},
		"the listing heeds no context":    {func(context.Context) error { time.Sleep(20 * time.Second); return nil }, time.Minute, 3 * time.Second},
		"the listing is refused":          {func(context.Context) error { return &mcpbridge.Error{Class: mcpbridge.ServerError} }, time.Minute, 0},
		"the connection breaks meanwhile": {func(context.Context) error { return brokenError("connection reset") }, time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			inFakeTime(t, supervisor.Config{}, func(h *harness) {
				h.server.set(func() { h.server.list = one.list })
				p := h.send(call("a", "hang", within(one.deadline)))
				synctest.Wait()
				h.server.breakConnection("a", false)
				began := time.Now()
				require.True(t, p.fails(messages.CodeLost).MayHaveRun)
				require.InDelta(t, one.answered.Seconds(), time.Since(began).Seconds(), 0.3) // the delay before the next dial
				h.server.set(func() { h.server.list = nil })
				h.send(call("a", "count")).ok()
				time.Sleep(20 * time.Second) // synctest: until the listing has ended
			})
		})
	}
}

// H-A4: a server may announce its tools again soon after a session was opened. A list from before that says
// nothing of them.
func TestToolsThatChangeWhileTheyAreListedAreListedAgain(t *testing.T) {
	for changes, again := range map[int]bool{1: true, 2: true, 1000: false} {
		inFakeTime(t, supervisor.Config{}, func(h *harness) {
			h.server.set(func() { h.server.unsure = changes })
			safe, unsafe := h.send(call("a", "slow/ro")), h.send(call("a", "slow"))
			synctest.Wait()
			h.server.breakConnection("a", false)
			require.True(t, unsafe.fails(messages.CodeLost).MayHaveRun)
			if again {
				require.True(t, safe.ok().Replayed)
				require.Equal(t, changes+1, h.server.lists)
			} else {
				require.True(t, safe.fails(messages.CodeLost).MayHaveRun)
				require.Equal(t, 3, h.server.lists, "a server may change its tools without end")
			}
		})
	}
}

// H-A4: one tools/list serves all calls that were lost. The other calls of the session do
// not wait for it.
func TestLostCallsShareOneListOfTheTools(t *testing.T) {
	inFakeTime(t, supervisor.Config{}, func(h *harness) {
		h.server.set(func() {
			h.server.list = func(context.Context) error { time.Sleep(2 * time.Second); return nil }
		})
		safe, unsafe := h.calls(32, "a", "slow/ro"), h.calls(32, "a", "slow")
		synctest.Wait()
		h.server.breakConnection("a", false)
		time.Sleep(time.Second) // synctest: until the new connection is open
		began := time.Now()
		h.send(call("a", "count")).ok()
		require.Zero(t, time.Since(began))
		for i := range safe {
			require.True(t, safe[i].ok().Replayed, fmt.Sprint(i))
			require.True(t, unsafe[i].fails(messages.CodeLost).MayHaveRun)
		}
		require.Equal(t, 1, h.server.lists)
	})
}

// A call that has certainly not run, because a front has answered in place of the server, is repeated without the
// annotations of its tool.
func TestCallThatHasNotRunIsRepeatedWithoutTheAnnotationsOfItsTool(t *testing.T) {
	for name, unheard := range map[string]mcpbridge.Error{
		"not sent":           {Class: mcpbridge.Unavailable},
		"refused by a front": {Class: mcpbridge.Invalid, Sent: true, Status: http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			unheard.Session = mcpbridge.Unheard
			var refused atomic.Bool
			hooks := faults.Hooks{BeforeCall: func(context.Context, messages.Key, messages.Operation) error {
				if refused.Swap(true) {
					return nil
				}
				return &unheard
			}}
			inFakeTime(t, hooks.Config(supervisor.Config{}), func(h *harness) {
				require.True(t, h.send(call("a", "count")).ok().Replayed)
				require.Zero(t, h.server.lists, "the annotations do not matter")
				require.Zero(t, countEvents[*messages.SessionRestarting](h))
			})
		})
	}
}
