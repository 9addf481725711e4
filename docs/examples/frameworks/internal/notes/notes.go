// Package notes has what the tests of the adapters share: a supervisor with a server of notes.
package notes

import (
	"context"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// Supervise starts a supervisor with the server "notes", whose tool "read" reads the note of a name.
// It ends with the test.
func Supervise(t *testing.T) *supervisor.Supervisor {
	type input struct {
		Name string `json:"name"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "notes", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "read", Description: "Reads a note."}, func(_ context.Context, _ *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Buy milk for " + in.Name + "."}}}, nil, nil
	})
	sup, err := supervisor.Start(nil, supervisor.Config{Servers: []supervisor.Server{{Name: "notes", InMemory: server}}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, sup.Stop(context.Background())) })
	return sup
}

// Tools returns a toolset for the notes. It ends with the test.
func Tools(t *testing.T, policy *toolset.Policy) *toolset.Toolset {
	tools, err := toolset.New(nil, Supervise(t), toolset.Config{Servers: []toolset.Filter{{Name: "*"}}, Policy: policy})
	require.NoError(t, err)
	t.Cleanup(tools.Close)
	return tools
}
