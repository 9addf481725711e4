package registry

import (
	"fmt"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// A session may be spawned before the registry knows that the one before it has opened. They have different
// generations nevertheless.
func TestASessionThatWasSpawnedEarlyHasItsOwnGeneration(t *testing.T) {
	var atDialed func()
	inWatchedRegistry(t, func(w *watchedRegistry) {
		second := make(chan any, 1)
		atDialed = func() { // the registry reads these before opened
			w.system.Root.Send(w.pid, &messages.CloseScope{Scope: "early"})
			box := w.call("early", "fast")
			go func() { second <- <-box.Reply }()
		}
		first := <-w.call("early", "fast").Reply
		require.Equal(t, uint64(1), first.(*messages.ToolResult).Generation)
		require.Equal(t, uint64(2), (<-second).(*messages.ToolResult).Generation)
	}, func(cfg *protocol.Config) {
		cfg.Probe = func(c actor.Context) {
			if do := atDialed; do != nil && fmt.Sprintf("%T", c.Message()) == "*session.dialed" {
				atDialed = nil
				do()
			}
		}
	})
}
