package bridge

import (
	"context"
	"log/slog"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// newClientOf returns a client of the SDK with the name and the custom methods that the configuration of a server has, or
// nil if it has neither. The SDK sends only methods that are registered with the client.
func newClientOf(server *mcpbridge.Server, capabilities *mcp.ClientCapabilities, log slog.Handler) *sdkClient {
	if len(server.CustomMethods) == 0 && server.ClientInfo == nil {
		return nil
	}
	c := newClient(server.ClientInfo, capabilities, log)
	for _, method := range server.CustomMethods {
		mcp.AddSendingCustomMethod[*customParams, *customResult](c.Client, method) //nolint:errcheck // Validate has checked the names
	}
	return c
}

// callCustom calls a custom method.
func (c *conn) callCustom(ctx context.Context, op *messages.Custom) (messages.Result, error) {
	if !slices.Contains(c.at.CustomMethods, op.Name) {
		return nil, &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: "the method is none of customMethods"}
	}
	params, err := newCustomParams(op.Params)
	if err != nil {
		return nil, &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: "params: " + err.Error(), Err: err}
	}
	result, err := mcp.CallCustomMethod[*customParams, *customResult](ctx, c.cs, op.Name, params)
	if err != nil {
		return nil, err
	}
	return &messages.CustomResult{Result: result.raw}, nil
}
