package registry

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/closing"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

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
		r.keeper.Replaced(name)
	}
	r.keeper.Declare()
	r.closer.DrainAll(closes)
	r.dialing.EvictIdle()
	r.member.TellTimeouts(r.closer.Time())
}
