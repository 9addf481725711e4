package registry

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// onTail gives the sessions of a key, also those that drain, a subscriber for the stderr of their
// server. If the key has no session, one is spawned, which does not dial.
func (r *registry) onTail(cmd *messages.Tail, from *actor.PID) {
	key := cmd.Key.Normal()
	if !r.isConfigured(cmd, from, key.Server) || !r.isValid(cmd, from, key.Validate()) {
		return
	}
	if !r.isRunning(cmd, from) {
		return
	}
	if r.servers[key.Server].Command == "" {
		r.respond(from, messages.NewFailure(cmd, messages.CodeInvalid, fmt.Sprintf("key.server: %q has no command, and so no stderr", truncated(key.Server))))
		return
	}
	if r.closings.all.Count > 0 {
		r.applyPendingCloses(key)
	}
	if cmd.Subscriber != nil {
		r.sessionOf(key)
	}
	if e := r.entries[key]; e != nil {
		for _, reg := range e.draining {
			reg.send(&contract.TailTo{Subscriber: cmd.Subscriber})
		}
		if e.current != nil {
			e.current.tailSet = true
			e.current.send(&contract.TailTo{Subscriber: cmd.Subscriber})
			r.touch(e.current)
		}
	}
	r.respond(from, &messages.Done{ID: cmd.ID})
}
