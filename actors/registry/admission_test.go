package registry

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// endpoints returns of how many addresses the gate knows something.
func (w *watchedRegistry) endpoints() int {
	return reflect.ValueOf(w.gate).Elem().FieldByName("endpoints").Len()
}

// The leftovers of a server that is not configured any more are closed in turns of their own, which end with them.
func TestTheGateForgetsServersWhoseLeftoversAreClosed(t *testing.T) {
	inWatchedRegistry(t, func(w *watchedRegistry) {
		before := w.endpoints()
		for i := range 10 {
			key := messages.Key{Server: fmt.Sprint("gone-", i), Scope: "left"}
			w.closings.Leftovers.Add(key, []contract.Leftover{{Resume: &mcpbridge.Resume{SessionID: "1"}, Reason: "it is a test"}})
			box := protocol.NewFuture(w.system, nil)
			w.system.Root.RequestWithCustomSender(w.pid, &messages.CloseScope{Scope: "left"}, box.PID)
			require.IsType(t, &messages.Closed{}, <-box.Reply)
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, before, w.endpoints())
	}, func(cfg *protocol.Config) { cfg.Servers[0].URL = "http://s" })
}

// The last messages of a session that other code has stopped may come after its end. They queue nothing.
func TestLastMessagesOfASessionThatOtherCodeHasStoppedQueueNothing(t *testing.T) {
	inWatchedRegistry(t, func(w *watchedRegistry) {
		var logged strings.Builder
		w.cfg.Logger = relay.NewLogger(zerolog.New(&logged))
		key := messages.Key{Server: "s", Scope: "left"}
		w.closings.Leftovers.Add(key, []contract.Leftover{{Resume: &mcpbridge.Resume{SessionID: "1"}, Reason: "it is a test"}})
		box := protocol.NewFuture(w.system, nil)
		w.system.Root.RequestWithCustomSender(w.pid, &messages.CloseSession{Key: key}, box.PID)
		time.Sleep(time.Millisecond) // its dial takes a second
		synctest.Wait()
		reg := w.table.Entry(key).Draining[0]
		w.system.Root.Stop(reg.PID)
		require.IsType(t, &messages.Closed{}, <-box.Reply)
		synctest.Wait()
		require.True(t, reg.Removed())
		open := w.gate.Sessions.Open
		control := &contract.ControlWanted{Of: reg}
		for _, last := range []any{
			&contract.DialRequested{Of: reg}, &contract.BecameIdle{Of: reg}, &contract.DialAbandoned{Of: reg},
			&contract.HandshakeAnswered{Of: reg}, control, &contract.ControlEnded{Of: control},
		} {
			w.system.Root.Send(w.pid, last)
		}
		synctest.Wait()
		require.NotContains(t, logged.String(), "panicked")
		require.NotNil(t, <-w.call("left", "fast").Reply)
		w.system.Root.Send(w.pid, &contract.DialRequested{Of: reg})
		synctest.Wait()
		require.False(t, reg.Queued() || reg.Dialing || reg.Held)
		require.Equal(t, open+1, w.gate.Sessions.Open)
	})
}

// Sessions that wait at the places of a server drain when a reload changes it, and those of the next one wait in
// their stead. What is known of the places stays while sessions are there.
func TestAReloadChangesAServerWithSessionsThatWait(t *testing.T) {
	dialer := new(placesDialer)
	inWatchedRegistry(t, func(w *watchedRegistry) {
		var waiting []*protocol.Future
		for i := range 200 {
			waiting = append(waiting, w.call(fmt.Sprint("down-", i), "fast"))
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Greater(t, w.table.Servers["s"].Turns.Down(), 190)
		before := w.table.Servers["s"] // its PerKey has no id, so that it counts as another function
		w.system.Root.Send(w.pid, &protocol.Reload{Servers: []mcpbridge.Server{before.Server}, Apply: func() {}})
		for i := range 200 {
			waiting = append(waiting, w.call(fmt.Sprint("down-", i), "fast"))
		}
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.NotSame(t, before, w.table.Servers["s"])
		require.Zero(t, before.Turns.Waiting())
		require.NotNil(t, <-w.call("quiet", "fast").Reply, "what comes now is after these reads, also for the race detector")
		dialer.up.Store(true)
		for i, box := range waiting {
			if reply := <-box.Reply; i >= 200 {
				require.IsType(t, &messages.ToolResult{}, reply)
			}
		}
		synctest.Wait()
		require.LessOrEqual(t, w.most, contract.WalkStep+1, "of one step")
	}, func(cfg *protocol.Config) {
		cfg.Dialer, cfg.Tenant, cfg.MaxSessions = dialer, func(key messages.Key) string { return key.Scope[:2] }, 3000
		cfg.Servers[0].PerKey = func(context.Context, messages.Key) (mcpbridge.Server, error) { panic("the dialer does it") }
	})
}
