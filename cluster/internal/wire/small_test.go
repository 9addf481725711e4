package wire

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

func TestOnlyWhatIsEncodedSoonIsSmall(t *testing.T) {
	long := strings.Repeat("x", smallSize)
	call := func(arguments any) any {
		return &messages.CallTool{Params: &mcp.CallToolParams{Name: "n", Arguments: arguments}}
	}
	result := func(content ...mcp.Content) any {
		return &messages.ToolResult{Result: &mcp.CallToolResult{Content: content}}
	}
	for _, v := range []any{
		&messages.Ping{}, &messages.Cancel{}, call(nil), call(map[string]any{"a": []any{1.5, "x", nil}}), call(json.RawMessage(`{}`)),
		result(), result(&mcp.TextContent{Text: "x"}, &mcp.TextContent{}),
	} {
		require.True(t, IsSmall(v), "%T %+v", v, v)
	}
	endless := map[string]any{}
	endless["again"] = endless
	for _, v := range []any{
		&messages.Ping{Header: messages.Header{PassOn: messages.PassOn{Extra: map[string]json.RawMessage{"a": nil}}}},
		&messages.ToolResult{Receipt: messages.Receipt{AsSent: messages.AsSent{Verbatim: json.RawMessage(long)}}, Result: &mcp.CallToolResult{}},
		&messages.CallTool{}, &messages.GetPrompt{}, &messages.Snapshot{}, &messages.Elicit{}, call(struct{}{}), call(endless), call(json.RawMessage(long)),
		call(map[string]any{long: 1}), call([]any{long}), result(&mcp.TextContent{Text: long}), result(&mcp.ImageContent{}), result((*mcp.TextContent)(nil)),
	} {
		require.False(t, IsSmall(v), "%T", v)
	}
}
