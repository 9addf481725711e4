package registry

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// onCancel cancels the operations of a key with an id. If there is none, it does nothing.
func (r *registry) onCancel(msg *messages.Cancel) {
	if key := msg.Key.Normal(); msg.ID != "" {
		r.interceptors.CancelNamed(key, msg.ID)
		r.calls.CancelNamed(key, msg.ID, r.cancellations)
	}
}

// onCancelScope cancels the operations of a scope.
func (r *registry) onCancelScope(cmd *messages.CancelScope, from *actor.PID) {
	key := messages.Key{Scope: cmd.Scope}.Normal()
	r.cancelScope(key.Scope, r.reports.Counters.Calls, "")
	r.respond(from, &messages.Done{ID: cmd.ID})
}

// cancelScope cancels the operations of a scope whose serial is at most upTo, and returns how many had no reply.
func (r *registry) cancelScope(scope string, upTo uint64, detail string) int {
	return r.calls.CancelScope(scope, upTo, detail) + r.interceptors.CancelScope(scope, upTo, detail)
}
