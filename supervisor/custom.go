package supervisor

import (
	"context"

	"github.com/mcpactor/mcpactor/messages"
)

// Custom calls a method that is not part of MCP, see [messages.Custom]. params is encoded as a
// JSON object; nil is an empty one.
func (c *Client) Custom(ctx context.Context, server, scope, method string, params any) (*messages.CustomResult, error) {
	return ask[*messages.CustomResult](ctx, c, &messages.Custom{Header: messages.To(server, scope), Name: method, Params: params})
}
