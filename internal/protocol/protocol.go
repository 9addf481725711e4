package protocol

import (
	"github.com/mcpactor/mcpactor/internal/caller"
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
	// Classes are those of their lists, by name, as far as all keys have the same. See [listclass.Of].
	Classes map[string]string
	// Apply gives the servers to the dialer. It must not block.
	Apply func()
}

// IgnoreDeadLetterLogging keeps a reload for a registry that has stopped out of
// Proto.Actor's dead letter log.
func (*Reload) IgnoreDeadLetterLogging() {}

// Stop makes the registry close all sessions, and then stop.
type Stop struct{}
