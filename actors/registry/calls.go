package registry

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/refusal"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// newCall counts an operation and returns it as a call of its sender, with a deadline.
func (r *registry) newCall(op messages.Operation, from *actor.PID) *contract.Call {
	r.reports.Counters.Calls++
	if h := op.Head(); h.Subscriber != nil {
		op = messages.With(op, *h) // progress is matched by the pointer, and a caller may send one operation twice
	}
	k := &contract.Call{
		Op: op, Key: op.Head().Key.Normal(), Supervisor: r.cfg.Name, Caller: from,
		Deadline: op.Head().Deadline, Serial: r.reports.Counters.Calls,
	}
	now := time.Now()
	k.Accepted = now
	if limit := now.Add(maxDeadline); k.Deadline.IsZero() {
		k.Deadline = now.Add(r.table.Limits(k.Key.Server).CallTimeout)
	} else if k.Deadline.After(limit) {
		k.Deadline = limit
	}
	return k
}

// newClientCall returns an operation of a client as a call with the values of its context.
func (r *registry) newClientCall(msg *protocol.ClientCall, from *actor.PID) *contract.Call {
	k := r.newCall(msg.Op, from)
	k.Values = &msg.Values
	return k
}

// newResentCall returns an operation of another member as a call of the sender.
func (r *registry) newResentCall(msg *protocol.ResentCall, from *actor.PID) *contract.Call {
	k := r.newCall(msg.Op, from)
	k.Values, k.Intercepted, k.List, k.Runs = msg.Values, msg.Intercepted, msg.List, msg.Runs
	if msg.MayHaveRun {
		k.Runs = max(1, msg.Runs)
		k.Lost = &mcpbridge.Error{Class: mcpbridge.Lost, Detail: msg.Detail, Sent: true}
		k.Undecided = true
	}
	return k
}

// accept sends a call to its session, hands it back to the cluster, or rejects it.
func (r *registry) accept(k *contract.Call) {
	if f := refusal.Malformed(k); f != nil {
		r.reject(k, f)
		return
	}
	if r.cluster.Owns != nil && r.handBack(k) {
		return
	}
	if f := r.refusal.Of(k, time.Now()); f != nil {
		r.reject(k, f)
		return
	}
	r.forward(k)
}

// forward gives a call to the session of its key, after the close commands that came before it.
func (r *registry) forward(k *contract.Call) {
	r.applyPendingCloses(k.Key)
	if k.IsDurable() {
		r.sweepCalls(time.Now())
	}
	if k.Op.Head().Owner != nil && !k.PassedOn { // else the intercepting registry does so
		r.owners.Accepted(k, nil)
	}
	r.give(k)
}

// reject answers a call that no session has. It may have an owner, if a session has handed it
// back.
func (r *registry) reject(k *contract.Call, f *messages.Failure) {
	r.cfg.Post.Send(k.Caller, f)
	r.table.CountRejected(k.Key.Server, f.Code)
	r.reports.Answered(k, f.Code)
	r.owners.Answered(k)
}

// onCallReplied notes that a session has replied to a call.
func (r *registry) onCallReplied(msg *contract.CallReplied) {
	reg := table.Of(msg.Of)
	r.table.Calls.Remove(msg.Call)
	if msg.Call.Op.Head().Owner != nil {
		r.owners.Answered(msg.Call)
	}
	reg.Load().CountReplied(msg, time.Now())
	r.reports.Answered(msg.Call, msg.Code)
	if reg.Removed() {
		return // other code has stopped the actor
	}
	reg.Outstanding--
	r.table.Recount(reg)
	r.dialing.Touch(reg)
}
