package registry

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/actors/internal/closing"
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

// onReload replaces the servers. From then on, calls to a server that has changed go to
// new sessions, which open when the old ones are closed.
func (r *registry) onReload(msg *protocol.Reload, from *actor.PID) {
	if r.table.Stopping {
		r.respond(from, &messages.Failure{Op: "Reload", Code: messages.CodeDraining, Detail: "the supervisor is stopping"})
		return
	}
	msg.Apply()
	before, next := r.table.Servers, r.servers.Next(msg.Servers, msg.Classes)
	changed := func(k messages.Key) bool { return next[k.Server] != before[k.Server] }
	of := func(server string) bool { return changed(messages.Key{Server: server}) }
	closes := r.closer.Begin(closing.Order{Caller: from, Match: changed}, of) // with the timeouts from before
	for _, name := range r.servers.Replace(next) {
		r.lists.Catalogue.Forget(name)
	}
	r.closer.DrainAll(closes)
	r.dialing.EvictIdle()
	r.member.TellTimeouts(r.closer.Time())
}
