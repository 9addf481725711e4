package wire

import (
	"encoding/json"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// Members tell scopes apart by what their clients say of themselves: no byte of it changes on the way.
func TestIntroductionCrossesByteForByte(t *testing.T) {
	for name, in := range map[string]*messages.Introduction{
		"none":    nil,
		"nothing": {},
		"a name":  {ProtocolVersion: "2025-06-18", ClientInfo: &mcp.Implementation{Name: "<client> & co", Version: "1\u2028", Icons: []mcp.Icon{{Source: "data:,"}}}},
		"members alone": {Initialize: map[string]json.RawMessage{
			"capabilities": json.RawMessage("{ \"acme/new\": {\"n\": 12345678901234567890.10, \"n\": 1e2},\n\t\"html\": \"<a>&\\u003c\u2028\" }"),
			"<odd>":        json.RawMessage(" null "),
			"no JSON":      json.RawMessage("{\xff"),
			"nothing":      nil,
		}},
	} {
		bind := &messages.Bind{ID: "1", Scope: "a", Owner: actor.NewPID("host:1", "owner"), Introduction: in}
		require.Equal(t, bind, again(t, bind), name)
	}
	_, _, err := Encode(&messages.Bind{Introduction: &messages.Introduction{Initialize: map[string]json.RawMessage{"\xff": nil}}})
	require.EqualError(t, err, "bind: introduction: initialize: is not valid UTF-8")
}
