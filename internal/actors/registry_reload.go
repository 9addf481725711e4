package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Reload replaces the list of servers. The sessions of a server that was removed or
// changed are closed as by [messages.CloseServer]. The others stay, with their new limits.
// The reply is [messages.Closed].
type Reload struct {
	// Servers are all servers from then on. They are valid.
	Servers []mcpbridge.Server
	// Apply gives them to the dialer. It must not block.
	Apply func()
}

// IgnoreDeadLetterLogging keeps a reload for a registry that has stopped out of
// Proto.Actor's dead letter log.
func (*Reload) IgnoreDeadLetterLogging() {}

// onReload replaces the servers. From then on, calls to a server that has changed go to
// new sessions, which open when the old ones are closed.
func (r *registry) onReload(c actor.Context, msg *Reload) {
	if r.stopping {
		r.respond(c, &messages.Failure{Op: "Reload", Code: messages.CodeDraining, Detail: "the supervisor is stopping"})
		return
	}
	msg.Apply()
	servers := make(map[string]*server, len(msg.Servers))
	for _, srv := range msg.Servers {
		before := r.servers[srv.Name]
		switch {
		case before == nil:
			servers[srv.Name] = r.newServer(srv, r.servers, servers)
			r.cfg.Logger.Info().Str("server", srv.Name).Msg("server added")
		case before.Same(&srv):
			r.setLimits(before, srv.Limits)
			servers[srv.Name] = before
		default:
			servers[srv.Name] = r.newServer(srv, r.servers, servers)
			r.cfg.Logger.Info().Str("server", srv.Name).Msg("server changed")
		}
	}
	for name := range r.servers {
		if servers[name] == nil {
			r.cfg.Logger.Info().Str("server", name).Msg("server removed")
		}
	}
	before := r.servers
	changed := func(k messages.Key) bool { return servers[k.Server] != before[k.Server] }
	closing := r.newCloseCommand(c, &messages.CloseAll{}, changed, drain{}) // with the timeouts from before
	r.servers = servers
	r.drainNext(c, closing)
	for _, srv := range servers {
		r.onCapDue(c, srv)
	}
	r.onIdleDue(c)
	r.grantDials(c) // a cap may be higher
	r.tellTimeouts(c)
}
