package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// entry returns the entry of a key, which is made if need be.
func (r *registry) entry(key messages.Key) *entry {
	e := r.entries[key]
	if e == nil {
		e = &entry{generation: r.past.of(key)}
		r.entries[key] = e
	}
	return e
}

// spawn makes the session actor of a key.
func (r *registry) spawn(c actor.Context, key messages.Key, e *entry) *child {
	ch := &child{key: key, server: r.servers[key.Server]}
	r.start(c, ch, &life{generation: e.generation, fresh: len(e.leaving) > 0 || r.left.has(key)})
	r.enter(ch, messages.StateWaiting)
	return ch
}

// start spawns the actor of a child.
func (r *registry) start(c actor.Context, ch *child, l *life) {
	l.cfg, l.key, l.server, l.registry, l.of, l.settled = r.cfg, ch.key, &ch.server.Server, c.Self(), ch, &settled{ch}
	l.after.bury = bury
	props := actor.PropsFromProducer(func() actor.Actor { return newSession(l) }, l.after.props(), actor.WithDispatcher(r.cfg.run))
	ch.pid = c.SpawnPrefix(props, "session")
	r.children[ch.pid.Id] = ch
	r.roster.add(ch)
}

// enter notes the state that a child is in from now on.
func (r *registry) enter(ch *child, state messages.State) {
	r.roster.enter(ch, state)
	r.recount(ch)
}
