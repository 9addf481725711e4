package actors

import (
	"fmt"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// onTail gives the session of a key a subscriber for the stderr of its server. If the key
// has no session, one is spawned, which does not dial.
func (r *registry) onTail(c actor.Context, cmd *messages.Tail) {
	key := cmd.Key.Normal()
	if !r.isConfigured(c, cmd, key.Server) || !r.isValid(c, cmd, key.Validate()) {
		return
	}
	if !r.isRunning(c, cmd) {
		return
	}
	if r.servers[key.Server].Command == "" {
		r.respond(c, messages.NewFailure(cmd, messages.CodeInvalid, fmt.Sprintf("key.server: %q has no command, and so no stderr", truncated(key.Server))))
		return
	}
	if len(r.closeCommands) > 0 {
		r.applyPendingCloses(c, key)
	}
	current := r.currentOf(key)
	if cmd.Subscriber != nil {
		current = r.sessionOf(c, key)
	}
	if current != nil {
		r.touch(c, current)
		c.Send(current.pid, &tailTo{cmd.Subscriber})
	}
	r.respond(c, &messages.Done{ID: cmd.ID})
}
