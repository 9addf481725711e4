package tests

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// A page of the web may say what the server says of a handle that is gone.
func TestTextOfAResultEndsNoHandle(t *testing.T) {
	withBrowsers(t, supervisor.Config{}, declared, newBrowsers, func(h *harness, b *browsers) {
		mcp.AddTool(b.server, &mcp.Tool{Name: "read"}, func(context.Context, *mcp.CallToolRequest, struct {
			ID string `json:"id"`
		},
		) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "404: there is no such browser"}}}, nil, nil
		})
		id := h.minted("a")
		h.send(call("a", "read", of(id))).ok()
		require.Len(t, h.handlesOf("a"), 1)
		b.set(func() { delete(b.open, id) })
		h.send(call("a", "use", of(id))).ok()
		require.Empty(t, h.handlesOf("a"), "the server says so")
		id = h.minted("a")
		h.send(call("a", "read", of(id))).ok()
		h.send(&messages.CloseScope{ID: "x", Scope: "a"}).reply()
		require.Empty(t, b.all())
		requireEvents[*messages.HandleLost](h, 1)
	})
}
