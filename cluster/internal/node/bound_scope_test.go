package node

import (
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// What a scope declares, what its client says of itself, and its subscriber hold on whichever member its session lives, until the
// binding ends.
func TestCapabilitiesAndSubscriberOfAScopeReachAllMembers(t *testing.T) {
	inWorld(t, 3, nil, func(w *world) {
		a := w.members[0]
		can := &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{ListChanged: true}, Sampling: &mcp.SamplingCapabilities{}}
		in := &messages.Introduction{
			ProtocolVersion: "2025-06-18", ClientInfo: &mcp.Implementation{Name: "client"},
			Initialize: map[string]json.RawMessage{"capabilities": json.RawMessage(`{ "acme/new": "<>" }`)},
		}
		owner, _ := a.spawn(nil)
		for _, m := range w.members {
			scope := w.scopeOf(m, 0)
			subscriber, got := a.spawn(nil)
			a.send(&messages.Bind{Scope: scope, Owner: owner, Subscriber: subscriber, Capabilities: can, Introduction: in}).reply()
			a.send(call(scope, "count")).text()
			var dialed clusterapi.DialRequest
			w.server.set(func() {
				for c := range w.server.open[messages.Key{Server: "s", Scope: scope}] {
					dialed = c.req
				}
			})
			require.Equal(t, can.RootsV2, dialed.Capabilities.RootsV2)
			require.NotNil(t, dialed.Capabilities.Sampling)
			require.Nil(t, dialed.Capabilities.Elicitation)
			require.Equal(t, in, dialed.Introduction)

			dialed.Heard(&messages.ServerLog{Data: "news"}, nil)
			require.Equal(t, "news", (<-got.got).(*messages.ServerLog).Data)
			a.send(&messages.Bind{Scope: scope, Owner: owner}).reply()
			dialed.Heard(&messages.ServerLog{Data: "more"}, nil)
			time.Sleep(time.Second)
			synctest.Wait()
			require.Empty(t, got.got)
		}
	})
}
