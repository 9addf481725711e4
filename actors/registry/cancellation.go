package registry

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// onCancel cancels the operations of a key that have an id. If there is none, it does nothing.
func (r *registry) onCancel(msg *messages.Cancel) {
	if msg.ID == "" {
		return
	}
	key := msg.Key.Normal()
	r.interceptors.CancelNamed(key, msg.ID)
	e := r.table.Entry(key)
	if e == nil {
		return
	}
	if e.Current != nil {
		r.cancelNamed(e.Current, msg.ID)
	}
	for _, reg := range e.Draining {
		r.cancelNamed(reg, msg.ID)
	}
}

// cancelNamed cancels the calls of a session that have an id.
func (r *registry) cancelNamed(reg *table.Registration, id string) {
	for k := r.table.Calls.Named(reg, id); k != nil; k = k.Named.Older {
		if !k.Cancelled {
			k.Cancelled = true
			r.cancellations.Add(reg.Key, func() { cancelCall(k, "") })
		}
	}
}

// onCancelScope cancels the operations of a scope.
func (r *registry) onCancelScope(cmd *messages.CancelScope, from *actor.PID) {
	key := messages.Key{Scope: cmd.Scope}.Normal()
	r.cancelScope(key.Scope, r.reports.Counters.Calls, "")
	r.respond(from, &messages.Done{ID: cmd.ID})
}

// cancelScope cancels the calls of a scope on all servers whose serial is at most upTo, and returns how
// many had no reply.
func (r *registry) cancelScope(scope string, upTo uint64, detail string) (count int) {
	msg := &contract.CancelCalls{UpTo: upTo, Detail: detail}
	for _, reg := range r.table.OfScope(scope) {
		count += reg.Outstanding
		reg.Send(msg)
		r.table.Entry(reg.Key).CancelledUpTo = upTo
	}
	return count + r.interceptors.CancelScope(scope, upTo, detail)
}

// onCallsHandedBack accepts, for the successor of an evicted session, the calls that the
// session has not run.
func (r *registry) onCallsHandedBack(msg *contract.CallsHandedBack) {
	reg := table.Of(msg.Of)
	reg.Outstanding -= len(msg.Calls)
	r.table.Recount(reg)
	var upTo uint64
	if e := r.table.Entry(reg.Key); e != nil {
		upTo = e.CancelledUpTo
	}
	for _, k := range msg.Calls {
		r.table.Calls.Remove(k)
		if k.Cancelled || upTo > 0 && k.Serial <= upTo {
			r.reject(k, k.Failure(messages.CodeCancelled, ""))
			continue
		}
		k.Kept = reg.DrainedBy.Restart
		r.accept(k)
	}
}

// cancelCall has the session of a call cancel it. If no session has it, it was answered, or is being handed
// back, and is not accepted again.
func cancelCall(k *contract.Call, detail string) {
	k.Cancelled = true
	if at := table.Of(k.At); at != nil {
		at.Send(&contract.CancelCalls{Call: k, Detail: detail})
	}
}
