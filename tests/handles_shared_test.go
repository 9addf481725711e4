package tests

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// Some servers have one connection for all who ask for the same.
func TestAHandleThatAServerGivesToAllIsHeldByAll(t *testing.T) {
	kind := declared
	kind.Max = 2
	withBrowsers(t, supervisor.Config{}, kind, newBrowsers, func(h *harness, b *browsers) {
		const id = "the-browser-of-all-users"
		mcp.AddTool(b.server, &mcp.Tool{Name: "open"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			b.set(func() { b.open[id] = true })
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: `{"browser": {"id": "` + id + `"}}`}}}, nil, nil
		})
		h.minted("a")
		h.minted("b")
		h.minted("b")
		require.True(t, h.handlesOf("a")[0].Shared)
		require.True(t, h.handlesOf("b")[0].Shared)
		snapshot := h.inspect().Servers[0].Handles[0]
		require.Equal(t, 1, snapshot.Held)
		require.Zero(t, snapshot.Waiting+snapshot.Minting)
		h.send(call("a", "use", of(id))).ok()
		h.send(&messages.CloseScope{ID: "x", Scope: "b"}).reply()
		require.Equal(t, []string{id}, b.all(), "a holds it")
		h.send(call("a", "use", of(id))).ok()
		h.send(&messages.CloseScope{ID: "y", Scope: "a"}).reply()
		require.Empty(t, b.all())
		requireEvents[*messages.HandleMinted](h, 1)
		requireEvents[*messages.HandleReleased](h, 1)
		require.Zero(t, countEvents[*messages.HandleLost](h))
	})
}
