package tests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// Finding A6: answers that a server sends to all its sessions reach none but their own
// callers.
func TestAnswersThatAreBroadcastReachTheirOwnCallers(t *testing.T) {
	for name, c := range map[string]struct {
		tools func() *faults.Tools
		kind  string
	}{"http": {httpTools, "tools/call"}, "sse": {sseTools, "GET"}} {
		t.Run(name, func(t *testing.T) {
			locally(t, supervisor.Config{}, c.tools, func(w *world, e *endpoint) {
				if name == "http" { // the SDK sends over HTTP+SSE one after the other
					e.Inject("tools/call", faults.Delay(10*time.Millisecond))
				}
				e.Inject(c.kind, faults.Broadcast())
				scopes := []string{"a", "b", "c", "d"}
				for range 5 {
					var all []*pending
					for _, scope := range scopes {
						all = append(all, w.calls(10, scope, "echo")...)
					}
					for _, p := range all {
						require.Equal(w.t, p.cmd.RequestID(), p.text())
					}
				}
				require.Equal(w.t, len(scopes), e.Count("initialize"))
			})
		})
	}
}
