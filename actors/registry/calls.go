package registry

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/nearest"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// onOperation sends an operation to the session of its key.
func (r *registry) onOperation(c actor.Context, op messages.Operation) {
	r.accept(c, r.newCall(c, op))
}

// newCall counts an operation and returns it as a call of the sender, with a deadline.
func (r *registry) newCall(c actor.Context, op messages.Operation) *contract.Call {
	r.counters.Calls++
	if h := op.Head(); h.Subscriber != nil {
		op = messages.With(op, *h) // progress is matched by the pointer, and a caller may send one operation twice
	}
	k := &contract.Call{
		Op: op, Key: op.Head().Key.Normal(), Supervisor: r.cfg.Name, Caller: c.Sender(),
		Deadline: op.Head().Deadline, Serial: r.counters.Calls,
	}
	now := time.Now()
	k.Accepted = now
	if limit := now.Add(maxDeadline); k.Deadline.IsZero() {
		k.Deadline = now.Add(r.limits(k.Key.Server).CallTimeout)
	} else if k.Deadline.After(limit) {
		k.Deadline = limit
	}
	return k
}

// newClientCall returns an operation of a client as a call with the values of its context.
func (r *registry) newClientCall(c actor.Context, msg *protocol.ClientCall) *contract.Call {
	k := r.newCall(c, msg.Op)
	k.Values = &msg.Values
	return k
}

// newResentCall returns an operation of another member as a call of the sender.
func (r *registry) newResentCall(c actor.Context, msg *protocol.ResentCall) *contract.Call {
	k := r.newCall(c, msg.Op)
	k.Values, k.Intercepted, k.Runs = msg.Values, msg.Intercepted, msg.Runs
	if msg.MayHaveRun {
		k.Runs = max(1, msg.Runs)
		k.Lost = &mcpbridge.Error{Class: mcpbridge.Lost, Detail: msg.Detail, Sent: true}
		k.Undecided = true
	}
	return k
}

// accept sends a call to its session, hands it back to the cluster, or rejects it.
func (r *registry) accept(c actor.Context, k *contract.Call) {
	if f := malformed(k); f != nil {
		r.reject(c, k, f)
		return
	}
	if r.handBack(c, k) {
		return
	}
	if f := r.rejection(k, time.Now()); f != nil {
		r.reject(c, k, f)
		return
	}
	r.forward(c, k)
}

// reject answers a call that no session has. It may have an owner, if a session has handed it
// back.
func (r *registry) reject(c actor.Context, k *contract.Call, f *messages.Failure) {
	r.cfg.Post.Send(k.Caller, f)
	r.countRejected(k.Key.Server, f.Code)
	r.logReply(k, f.Code)
	r.disown(c, k)
}

// malformed returns the rejection of a call whose operation is invalid, or nil.
func malformed(k *contract.Call) *messages.Failure {
	if err := k.Key.Validate(); err != nil {
		f := k.Failure(messages.CodeInvalid, err.Error())
		f.Key.Scope = "" // which may be too long, or not printable
		return f
	}
	if err := k.Op.Validate(); err != nil {
		return k.Failure(messages.CodeInvalid, err.Error())
	}
	if replay := k.Op.Head().Replay; replay > messages.ReplayAlways {
		return k.Failure(messages.CodeInvalid, fmt.Sprintf("replay: %d is none of the constants", replay))
	}
	h := k.Op.Head()
	if err := errors.Join(h.Attributes.Validate(), h.Trace.Validate()); err != nil {
		return k.Failure(messages.CodeInvalid, err.Error())
	}
	return nil
}

// rejection returns the failure for a call that is not accepted, or nil.
func (r *registry) rejection(k *contract.Call, now time.Time) *messages.Failure {
	if f := mayNotReplay(k); f != nil {
		return f
	}
	srv := r.servers[k.Key.Server]
	switch op, custom := k.Op.(*messages.Custom); {
	case custom && srv != nil && !slices.Contains(srv.CustomMethods, op.Name):
		return k.Failure(messages.CodeInvalid, fmt.Sprintf("name: %q is not one of the customMethods of the server", truncated(op.Name)))
	case r.stopping:
		return k.Failure(messages.CodeDraining, "the supervisor is stopping")
	case srv == nil:
		return k.Failure(messages.CodeUnknownServer, r.noServer(k.Key.Server))
	case !now.Before(k.Deadline):
		return k.Failure(messages.CodeDeadline, "the deadline had passed before the call came")
	}
	reg := r.currentOf(k.Key)
	if f := r.unavailable(k, srv, reg, now); f != nil {
		return f
	}
	if f := r.busy(k, srv, reg); f != nil {
		return f
	}
	return r.orphaned(k)
}

// mayNotReplay returns the failure of a resent call that may have run and must not be replayed, or nil.
func mayNotReplay(k *contract.Call) *messages.Failure {
	if !k.Undecided {
		return nil
	}
	again, needsHint := k.MayReplay(k.Lost)
	if !again {
		return k.FailureOf(k.Lost)
	}
	k.Undecided, k.NeedsHint = false, needsHint
	return nil
}

// unavailable returns the failure for a call that would wait for a server that is down, with FailFast, or for a
// session that was given up, or nil. reg is the session of the key, or nil.
func (r *registry) unavailable(k *contract.Call, srv *server, reg *registration, now time.Time) *messages.Failure {
	ep := srv.turns.Home.Endpoint
	if reg != nil {
		ep = reg.Place.Endpoint
	}
	switch {
	case r.cfg.FailFast && ep.Down && !ep.AllowsProbe(now) && (reg == nil || reg.unconnected()):
		return contract.RetryIn(k.Unavailable(causeOf(ep, reg)), ep.Next.Sub(now))
	case reg != nil && reg.breakerOpen(now) && !reg.mayHaveNewCredentials():
		return contract.RetryIn(k.Unavailable(reg.cause.Cause), reg.breakerUntil.Sub(now))
	}
	return nil
}

// busy returns the failure for a call that finds too many others waiting, or nil. reg is the session of the key, or
// nil.
func (r *registry) busy(k *contract.Call, srv *server, reg *registration) *messages.Failure {
	detail := ""
	t := r.tenantOf(k.Key, reg)
	switch most := srv.limits.MaxInFlight + srv.limits.MaxWaiting; {
	case k.Kept:
	case reg != nil && reg.outstanding >= most:
		detail = fmt.Sprintf("%d calls of this session are running or waiting (MaxInFlight, MaxWaiting)", reg.outstanding)
	case reg.hasRoom(srv.limits.MaxInFlight):
	case r.noSlotFor(k.Key, reg) != "":
		detail = r.noSlotFor(k.Key, reg)
	case t != nil && t.waiting >= t.mostWaiting(most):
		detail = fmt.Sprintf("%d calls of all sessions of the tenant are waiting (MaxSessionsPerTenant sessions with MaxInFlight, MaxWaiting)", t.waiting)
	case r.waiting >= r.cfg.MaxWaitingTotal:
		detail = fmt.Sprintf("%d calls of all sessions are waiting (MaxWaitingTotal)", r.waiting)
	}
	if detail == "" {
		return nil
	}
	return k.Failure(messages.CodeBusy, detail)
}

// forward sends a call to the session of its key, and spawns the session if there is none.
func (r *registry) forward(c actor.Context, k *contract.Call) {
	if r.closings.all.Count > 0 {
		r.applyPendingCloses(c, k.Key)
	}
	reg := r.sessionOf(c, k.Key)
	if !k.PassedOn { // else the front does so
		r.own(c, k, nil)
	}
	reg.outstanding++
	reg.calls++
	r.recount(reg)
	r.touch(reg)
	r.tellLimits(reg)
	r.calls.add(k, reg)
	reg.send(k)
}

// recount updates the number of waiting calls after the calls or the state of a session
// have changed.
func (r *registry) recount(reg *registration) {
	waiting := reg.outstanding
	switch {
	case reg.Draining: // its calls are running or were handed back
		waiting = 0
	case reg.isHeard():
		waiting = max(0, waiting-reg.server.limits.MaxInFlight)
	}
	r.waiting += waiting - reg.waiting
	reg.group.load.recount(reg, waiting)
	if reg.tenant != nil {
		reg.tenant.waiting += waiting - reg.waiting
	}
	reg.waiting = waiting
}

// onUnheard notes that calls of a session wait although it has a connection, or wait no longer. Those that run
// count among them.
func (r *registry) onUnheard(msg *contract.Unheard) {
	if reg := registrationOf(msg.Of); !reg.removed() {
		reg.unheard = msg.Cause
		r.recount(reg)
	}
}

// isHeard reports whether a session runs calls.
func (reg *registration) isHeard() bool {
	return reg.state() == messages.StateReady && reg.unheard == nil
}

// hasRoom reports whether a session would run another call at once. One that is unheard has room for the call that
// finds out whether it still is.
func (reg *registration) hasRoom(inFlight int) bool {
	return reg != nil && reg.state() == messages.StateReady && reg.outstanding < inFlight && (reg.unheard == nil || reg.outstanding == 0)
}

// onCallReplied notes that a session has replied to a call.
func (r *registry) onCallReplied(c actor.Context, msg *contract.CallReplied) {
	reg := registrationOf(msg.Of)
	r.calls.remove(msg.Call)
	if msg.Call.Op.Head().Owner != nil {
		r.disown(c, msg.Call)
	}
	reg.group.load.countReplied(msg, time.Now())
	r.logReply(msg.Call, msg.Code)
	if reg.removed() {
		return // other code has stopped the actor
	}
	reg.outstanding--
	r.recount(reg)
	r.touch(reg)
}

// noServer says that no server of a name is configured, and which one may be meant.
func (r *registry) noServer(name string) string {
	if meant := nearest.Of(name, slices.Sorted(maps.Keys(r.servers))); meant != "" {
		return fmt.Sprintf("no server %q is configured: did you mean %q?", truncated(name), meant)
	}
	return fmt.Sprintf("no server %q is configured", truncated(name))
}

// truncated returns the first 128 bytes of a name that a caller chose.
func truncated(name string) string {
	if len(name) > 128 {
		return name[:128] + "…"
	}
	return name
}
