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
func (r *registry) onOperation(op messages.Operation, from *actor.PID) {
	r.accept(r.newCall(op, from))
}

// newCall counts an operation and returns it as a call of its sender, with a deadline.
func (r *registry) newCall(op messages.Operation, from *actor.PID) *contract.Call {
	r.counters.Calls++
	if h := op.Head(); h.Subscriber != nil {
		op = messages.With(op, *h) // progress is matched by the pointer, and a caller may send one operation twice
	}
	k := &contract.Call{
		Op: op, Key: op.Head().Key.Normal(), Supervisor: r.cfg.Name, Caller: from,
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
	if f := malformed(k); f != nil {
		r.reject(k, f)
		return
	}
	if r.cluster.Owns != nil && r.handBack(k) {
		return
	}
	if f := r.rejection(k, time.Now()); f != nil {
		r.reject(k, f)
		return
	}
	r.forward(k)
}

// forward gives a call to the session of its key, after the close commands that came before it.
func (r *registry) forward(k *contract.Call) {
	if r.closings.all.Count > 0 {
		r.applyPendingCloses(k.Key)
	}
	if k.IsDurable() {
		r.sweepCalls(time.Now())
	}
	if k.Op.Head().Owner != nil && !k.PassedOn { // else the intercepting registry does so
		r.own(k, nil)
	}
	r.give(k)
}

// reject answers a call that no session has. It may have an owner, if a session has handed it
// back.
func (r *registry) reject(k *contract.Call, f *messages.Failure) {
	r.cfg.Post.Send(k.Caller, f)
	r.countRejected(k.Key.Server, f.Code)
	r.logReply(k, f.Code)
	r.disown(k)
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
	if f := r.refusal(k, now); f != nil || k.Op.Head().Owner == nil {
		return f
	}
	return r.orphaned(k)
}

// mayNotReplay returns the failure of a resent call that may have run and must not be replayed, or nil.
func mayNotReplay(k *contract.Call) *messages.Failure {
	if !k.Undecided {
		return nil
	}
	if k.IsDurable() { // the store knows
		k.Undecided, k.Lost = false, nil
		return nil
	}
	again, needsHint := k.MayReplay(k.Lost)
	if !again {
		return k.FailureOf(k.Lost)
	}
	k.Undecided, k.NeedsHint = false, needsHint
	return nil
}

// onCallReplied notes that a session has replied to a call.
func (r *registry) onCallReplied(msg *contract.CallReplied) {
	reg := registrationOf(msg.Of)
	r.calls.remove(msg.Call)
	if msg.Call.Op.Head().Owner != nil {
		r.disown(msg.Call)
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

// load is the load of a server.
type load struct{ messages.Load }

// countReplied counts an operation that a session has answered.
func (l *load) countReplied(msg *contract.CallReplied, now time.Time) {
	if _, is := msg.Call.Op.(*contract.Reopen); is {
		return
	}
	l.count(msg.Code)
	l.Durations.Add(now.Sub(msg.Call.Accepted))
	if msg.Call.Runs > 0 {
		l.Waits.Add(msg.Waited)
	}
}

// count counts a reply. The code is empty for a result.
func (l *load) count(code messages.Code) {
	switch {
	case code == "":
		l.Succeeded++
	case l.Failed == nil:
		l.Failed = map[messages.Code]uint64{code: 1}
	default:
		l.Failed[code]++
	}
}

// snapshot returns a copy.
func (l *load) snapshot() messages.Load {
	copied := l.Load
	copied.Failed = maps.Clone(l.Failed)
	return copied
}

// countRejected counts a call that was rejected, if its server is configured.
func (r *registry) countRejected(server string, code messages.Code) {
	if r.servers[server] != nil {
		r.index.group(server).load.count(code)
	}
}

// callName is how a [messages.Cancel] names a call.
type callName struct {
	session *registration
	id      string
}

// callNames finds the calls that sessions have by their ids. Calls of one name are linked. Adding and
// removing one takes constant time.
type callNames map[callName]*contract.Call

// add adds a call that a session is about to get.
func (names callNames) add(k *contract.Call, to *registration) {
	k.At = to
	if k.Op.RequestID() == "" {
		return // it cannot be cancelled by name
	}
	name := callName{to, k.Op.RequestID()}
	if k.Named.Older = names[name]; k.Named.Older != nil {
		k.Named.Older.Named.Newer = k
	}
	names[name] = k
}

// remove removes a call that its session no longer has.
func (names callNames) remove(k *contract.Call) {
	name := callName{registrationOf(k.At), k.Op.RequestID()}
	older, newer := k.Named.Older, k.Named.Newer
	if older != nil {
		older.Named.Newer = newer
	}
	switch {
	case newer != nil:
		newer.Named.Older = older
	case older != nil:
		names[name] = older
	default:
		delete(names, name)
	}
	k.At, k.Named.Older, k.Named.Newer = nil, nil, nil
}
