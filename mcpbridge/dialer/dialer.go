// Package dialer makes the [mcpbridge.Bridge] that dials servers with the Go SDK of MCP.
package dialer

import (
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/bridge"
)

// New returns a bridge to servers, which must be valid: see [mcpbridge.Server.Validate].
// Servers are told the capabilities, which say what a server may request; nil means none.
//
// The logger gets what the SDK logs about sessions; nil means none. What the SDK calls an
// error, such as a tool that it leaves out of a list because it is malformed, is Warn. Secrets
// of the servers are blacked out.
//
// The bridge runs the [mcpbridge.Cleanup] of servers for sessions that a process has left which was killed. Close ends
// that.
//
// A supervisor makes its own bridge. Call New to use a bridge without a supervisor, or in
// tests.
func New(servers []mcpbridge.Server, capabilities *mcp.ClientCapabilities, logger *slog.Logger) mcpbridge.Bridge {
	b := bridge.New(servers, capabilities)
	if logger != nil {
		b.LogTo(logger)
	}
	b.Recover()
	return b
}
