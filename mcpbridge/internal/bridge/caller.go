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
	explain  func(ctx context.Context, ex *wire.Exchange, err error) *mcpbridge.Error
}
