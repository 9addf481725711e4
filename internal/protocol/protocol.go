package protocol

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/internal/listclass"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// ClientCall is an operation of a client, with the values of the context of its caller. The
// client releases the values when it has the reply.
type ClientCall struct {
	Op     messages.Operation
	Values caller.Values
}

// Reload replaces the list of servers. The sessions of a server that was removed or
// changed are closed as by [messages.CloseServer]. The others stay, with their new limits.
// The reply is [messages.Closed].
type Reload struct {
	// Servers are all servers from then on. They are valid.
	Servers []mcpbridge.Server
	// Classes are those of their lists, by name, as far as all keys have the same: see [ClassesOf].
	Classes map[string]string
	// Apply gives the servers to the dialer. It must not block.
	Apply func()
}

// ClassesOf returns the [Reload.Classes] of servers. It runs code of the user, which may block: the MarshalJSON of what is sent
// when a session opens.
func ClassesOf(servers []mcpbridge.Server, can *mcp.ClientCapabilities) map[string]string {
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

// IgnoreDeadLetterLogging keeps a reload for a registry that has stopped out of
// Proto.Actor's dead letter log.
func (*Reload) IgnoreDeadLetterLogging() {}

// Stop makes the registry close all sessions, and then stop.
type Stop struct{}
