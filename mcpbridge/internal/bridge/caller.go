package bridge

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// caller runs operations with the SDK.
type caller struct {
	cs       *mcp.ClientSession
	maxBytes int  // of all pages of a list together
	isModern bool // the protocol is 2026-07-28 or later
	errors   explainer
}

// explainer explains errors of the SDK. It is no function: a method value would be an allocation for each operation.
type explainer interface {
	explain(ctx context.Context, ex *wire.Exchange, err error) *mcpbridge.Error
}
