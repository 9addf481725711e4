package registry

import (
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/protocol"
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
			w.leftovers.add(key, []contract.Leftover{{Resume: &mcpbridge.Resume{SessionID: "1"}, Reason: "it is a test"}})
			box := protocol.NewFuture(w.system, nil)
			w.system.Root.RequestWithCustomSender(w.pid, &messages.CloseScope{Scope: "left"}, box.PID)
			require.IsType(t, &messages.Closed{}, <-box.Reply)
			synctest.Wait()
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		require.Equal(t, before, w.endpoints())
	}, func(cfg *actors.Config) { cfg.Servers[0].URL = "http://s" })
}
