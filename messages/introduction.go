package messages

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Introduction is what a client says of itself when it opens a session, apart from the capabilities that it declares. It is for
// servers whose PerKey heeds it: those that a gateway prepares. Others ignore it.
type Introduction struct {
	// ProtocolVersion is the revision of MCP that the client speaks.
	ProtocolVersion string `json:"protocolVersion,omitempty"`
	// ClientInfo is the name of the client, and what belongs to it, or nil. Read-only once sent.
	ClientInfo *mcp.Implementation `json:"clientInfo,omitempty"`
	// Initialize are further members of the parameters of initialize, such as capabilities that the SDK does not know: see
	// PassOn of package mcpbridge. Read-only once sent.
	Initialize map[string]json.RawMessage `json:"initialize,omitempty"`
}
