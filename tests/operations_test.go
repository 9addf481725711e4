package tests

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/operations"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// A new operation has to be entered here, with a part of its reply in JSON: it is replayed without
// the caller's permission only when running it twice does no harm.
func TestEveryOperationIsAnswered(t *testing.T) {
	server := addCustom(t, faults.NewTools().Server(), func() {})
	h := start(t, supervisor.Config{
		Capabilities: &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{ListChanged: true}},
		Servers:      []mcpbridge.Server{{Name: "s", InMemory: server, CustomMethods: methods}},
	})
	const idempotent, once = true, false
	left := map[reflect.Type]messages.Result{}
	for op, result := range operations.All() {
		left[reflect.TypeOf(op)] = result
	}
	to := messages.To("s", "a")
	for _, row := range []struct {
		op         messages.Operation
		idempotent bool
		reply      string
	}{
		{&messages.CallTool{Header: to, Params: &mcp.CallToolParams{Name: "count"}}, once, `"text":"1"`}, // the server's annotations of the tool tell
		{&messages.Custom{Header: to, Name: "acme/echo", Params: map[string]any{"text": "hello"}}, once, `"text":"hello"`},
		{&messages.ListTools{Header: to}, idempotent, `"name":"count/ro"`},
		{&messages.ListResources{Header: to}, idempotent, `"uri":"file:///one"`},
		{&messages.ListResourceTemplates{Header: to}, idempotent, `"uriTemplate":"file:///any/{name}"`},
		{&messages.ReadResource{Header: to, Params: &mcp.ReadResourceParams{URI: "file:///one"}}, idempotent, `"text":"first"`},
		{&messages.ListPrompts{Header: to}, idempotent, `"name":"greet"`},
		{&messages.GetPrompt{Header: to, Params: &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"who": "you"}}}, idempotent, `"description":"hello you"`},
		{&messages.Complete{Header: to, Params: &mcp.CompleteParams{
			Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: "greet"}, Argument: mcp.CompleteParamsArgument{Name: "who", Value: "you"},
		}}, idempotent, `"values":["you!"]`},
		{&messages.Subscribe{Header: to, URI: "file:///one"}, idempotent, `"target":"file:///one"`},
		{&messages.Unsubscribe{Header: to, URI: "file:///one"}, idempotent, `"target":"file:///one"`},
		{&messages.SetLogLevel{Header: to, Level: "info"}, idempotent, ``},
		{&messages.SetRoots{Header: to, Roots: []*mcp.Root{{URI: "file:///a"}}}, idempotent, ``},
		{&messages.Ping{Header: to}, idempotent, ``},
		{&messages.Open{Header: to}, idempotent, `"serverInfo":{"name":"faults","version":"1"}`},
	} {
		of := reflect.TypeOf(row.op)
		require.Equal(t, row.idempotent, row.op.Idempotent(), "%v", of)
		require.Contains(t, left, of, "it has two rows, or is none of operations.All")
		reply := h.send(row.op).reply()
		require.IsType(t, left[of], reply, "%v", reply)
		text, err := json.Marshal(reply)
		require.NoError(t, err)
		require.Contains(t, string(text), row.reply)
		delete(left, of)

		method, found := reflect.TypeFor[*supervisor.Client]().MethodByName(of.Elem().Name())
		require.True(t, found, "the client has no method %s", of.Elem().Name())
		require.Equal(t, reflect.TypeOf(reply), method.Type.Out(0))
	}
	require.Empty(t, left, "an operation has no row in this test")
	h.send(&messages.ReadResource{Header: to, Params: &mcp.ReadResourceParams{URI: "nonsense:"}}).fails(messages.CodeInvalid)
	h.send(&messages.ReadResource{Header: to}).fails(messages.CodeInvalid)
	h.stopAndVerify()
}
