package registry

import (
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/closing"
	"github.com/mcpactor/mcpactor/actors/internal/table"
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
	servers := make(map[string]*table.Server, len(msg.Servers))
	for _, srv := range msg.Servers {
		before := r.table.Servers[srv.Name]
		switch {
		case before == nil:
			servers[srv.Name] = r.dialing.NewServer(srv, msg.Classes[srv.Name])
			r.cfg.Logger.Info().Str("server", srv.Name).Msg("server added")
		case before.Same(&srv):
			r.dialing.SetLimits(before, srv.Limits)
			servers[srv.Name] = before
		default:
			servers[srv.Name] = r.dialing.NewServer(srv, msg.Classes[srv.Name])
			r.cfg.Logger.Info().Str("server", srv.Name).Msg("server changed")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.table.Servers)) {
		if servers[name] == nil {
			r.cfg.Logger.Info().Str("server", name).Msg("server removed")
		}
	}
	before := r.table.Servers
	changed := func(k messages.Key) bool { return servers[k.Server] != before[k.Server] }
	of := func(server string) bool { return changed(messages.Key{Server: server}) }
	closes := r.closer.Begin(closing.Order{Caller: from, Match: changed}, of) // with the timeouts from before
	r.table.Servers = servers
	for name, srv := range before {
		if servers[name] != srv {
			r.gate.Remove(srv.Turns)
			r.lists.Catalogue.Forget(name)
		}
	}
	r.closer.DrainAll(closes)
	r.dialing.EvictIdle()
	r.member.TellTimeouts(r.closer.Time())
}
