package sdk

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/docs/examples/frameworks/internal/notes"
)

// session is what frameworks take.
type session interface {
	ListTools(ctx context.Context, params *mcp.ListToolsParams) (*mcp.ListToolsResult, error)
	CallTool(ctx context.Context, params *mcp.CallToolParams) (*mcp.CallToolResult, error)
}

var _ session = (*mcp.ClientSession)(nil)

func TestSessionListsAndCalls(t *testing.T) {
	var s session = Session{notes.Supervise(t).Client(), "notes", "conversation-1"}
	list, err := s.ListTools(t.Context(), nil)
	require.NoError(t, err)
	result, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: list.Tools[0].Name, Arguments: map[string]any{"name": "Ada"}})
	require.NoError(t, err)
	require.Equal(t, "Buy milk for Ada.", result.Content[0].(*mcp.TextContent).Text)
}
