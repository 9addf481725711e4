package registry

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/listclass"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// NewReload returns a reload. It runs code of the user, which may block: the MarshalJSON of what is sent when a session
// opens.
func NewReload(servers []mcpbridge.Server, can *mcp.ClientCapabilities, apply func()) *protocol.Reload {
	return &protocol.Reload{Servers: servers, Classes: classesOf(servers, can), Apply: apply}
}

// classesOf returns the classes of the lists of servers, see [protocol.Reload]. It runs code of the user, as NewReload does.
func classesOf(servers []mcpbridge.Server, can *mcp.ClientCapabilities) map[string]string {
	classes := map[string]string{}
	for _, srv := range servers {
		if srv.ListClass != nil || srv.PerKey != nil {
			continue
		}
		class := listclass.Of(context.Background(), &srv, messages.Key{Server: srv.Name}, can)
		if class != listclass.Own(messages.DefaultScope) {
			classes[srv.Name] = class
		}
	}
	return classes
}
