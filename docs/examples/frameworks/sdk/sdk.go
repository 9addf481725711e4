// Package sdk is for frameworks that take a client session with the types of the MCP Go SDK, such as
// officialmcp of eino-ext.
package sdk

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/supervisor"
)

// Session calls one server in one scope, as an *mcp.ClientSession does.
type Session struct {
	Client        *supervisor.Client
	Server, Scope string
}

// ListTools lists all tools, whatever the cursor.
func (s Session) ListTools(ctx context.Context, _ *mcp.ListToolsParams) (*mcp.ListToolsResult, error) {
	reply, err := s.Client.ListTools(ctx, s.Server, s.Scope)
	if err != nil {
		return nil, err
	}
	return reply.Result, nil
}

// CallTool calls a tool.
func (s Session) CallTool(ctx context.Context, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	reply, err := s.Client.CallTool(ctx, s.Server, s.Scope, params)
	if err != nil {
		return nil, err
	}
	return reply.Result, nil
}
