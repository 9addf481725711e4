package gateway

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/toolset"
)

// Scope is where a client calls, and what its end ends.
type Scope struct {
	// Name is the name of the scope, such as that of a conversation. Defaults for [Gateway.Server] to a new name for each client, and
	// for [Gateway.Tools] to the scope of the toolset. Clients of one scope share its sessions, and must have the same name, version
	// and capabilities. Connect before any other call in the scope: a session that is open keeps what it was told, and a client that it
	// would not ask is refused.
	Name string
	// Ends is true if the scope ends with its last client: its sessions are closed, what it holds in those of other scopes is released, and
	// calls of others in it are ended. With false the sessions stay open. Defaults to false, and for a new name to true.
	Ends bool
	// Owner is the actor that the scope belongs to: the scope and its clients end with it. The gateway binds the scope, see
	// [messages.Bind], in place of a binding of yours: an owner that it has is to be named here. Defaults to nil.
	Owner *actor.PID
}

// offer is what a client gets, and where.
type offer struct {
	servers  []toolset.Filter // see wanted
	leftOut  []string         // see [Config.LeftOut]
	prefixed bool             // see [Config.Prefixed]
	tools    *toolset.Toolset // lists and calls the tools; nil if they are those of the servers as they are
	scope    Scope
	close    func() // ends the client, if it is in this process, or is nil
}

// isHere reports whether the client is in this process: a failure reaches it as the error that it is.
func (o *offer) isHere() bool { return o.close != nil }

// wanted returns the servers that the client gets, with filters for their tools.
func (o *offer) wanted() []toolset.Filter {
	if o.tools == nil {
		return o.servers
	}
	all := o.tools.Filters()
	for i := range all {
		if all[i].Scope == o.tools.Scope() {
			all[i].Scope = "" // the session is that of the client
		}
	}
	return all
}
