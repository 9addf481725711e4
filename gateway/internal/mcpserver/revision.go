package mcpserver

import (
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Revisions are the revisions of the protocol that clients may speak, the newest first. Those after 2025-11-25 have no sessions,
// and no requests of servers.
var Revisions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// metaRevision is where a client of a later revision names it.
const metaRevision = "io.modelcontextprotocol/protocolVersion"

// refuseRevision returns the error for a request of a client that speaks a later revision, or nil. That to server/discover is the one of
// servers that do not know it: each client then sends initialize, but @ai-sdk/mcp gives up if it is told the revisions.
func refuseRevision(m *Message) error {
	asked := m.Meta().Text(metaRevision)
	switch {
	case m.Method == "server/discover":
		return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "server/discover is not known: use initialize"}
	case asked == "" || slices.Contains(Revisions, asked):
		return nil
	}
	data, err := json.Marshal(&mcp.UnsupportedProtocolVersionData{Supported: Revisions, Requested: asked})
	if err != nil {
		return err
	}
	return &jsonrpc.Error{Code: mcp.CodeUnsupportedProtocolVersion, Message: "Unsupported protocol version: use initialize", Data: data}
}
