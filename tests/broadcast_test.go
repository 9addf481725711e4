package tests

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// H-A6: an answer that a server sends to all its sessions reaches only its own caller.
func TestAnswersThatAreBroadcastReachTheirOwnCallers(t *testing.T) {
	for name, c := range map[string]struct {
		tools func() *faults.Tools
		kind  string
	}{"http": {newHTTPTools, "tools/call"}, "sse": {newSSETools, "GET"}} {
		t.Run(name, func(t *testing.T) {
			overLocalHTTP(t, supervisor.Config{}, c.tools, func(h *harness, e *testServer) {
				if name == "http" { // over HTTP+SSE the SDK sends them one after the other
					e.Inject("tools/call", faults.Delay(10*time.Millisecond))
				}
				e.Inject(c.kind, broadcastAll())
				scopes := []string{"a", "b", "c", "d"}
				for range 5 {
					var all []*sentCommand
					for _, scope := range scopes {
						all = append(all, h.calls(10, scope, "echo")...)
					}
					for _, p := range all {
						require.Equal(h.t, p.cmd.RequestID(), p.text())
					}
				}
				require.Equal(h.t, len(scopes), e.Count("initialize"))
			})
		})
	}
}
