package registry

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// onTail gives the sessions of a key, also those that drain, a subscriber for the stderr of their
// server. If the key has no session, one is spawned, which does not dial.
func (r *registry) onTail(cmd *messages.Tail, from *actor.PID) {
	key := cmd.Key.Normal()
	if r.table.Servers[key.Server].Command == "" {
		r.respond(from, messages.NewFailure(cmd, messages.CodeInvalid, fmt.Sprintf("key.server: %q has no command, and so no stderr", table.Truncated(key.Server))))
		return
	}
	r.closer.Apply(key)
	if cmd.Subscriber != nil {
		r.sessions.Current(key)
	}
	if e := r.table.Entry(key); e != nil {
		for _, reg := range e.Draining {
			reg.Send(&contract.TailTo{Subscriber: cmd.Subscriber})
		}
		if e.Current != nil {
			e.Current.TailSet = true
			e.Current.Send(&contract.TailTo{Subscriber: cmd.Subscriber})
			r.dialing.Touch(e.Current)
		}
	}
	r.respond(from, &messages.Done{ID: cmd.ID})
}
