package registry

import (
	"context"
	"errors"
	"fmt"
	"time"
	"github.com/asynkron/protoactor-go/actor"
	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/refusal"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// intercepting is the actor that takes the commands. It runs each operation through the interceptors, if there are
// any, and questions to the catalogue through its lister, which is the innermost one. It gives the calls that they
// pass on, and all other messages, to the registry.
//
//	operation ──▶ interceptors ──passedOn──▶ registry ──▶ session
//	reply     ◀── interceptors ◀──reply───────────────────┘
//
// The interceptors run in a goroutine for each operation. The intercepting registry owes the caller the
// reply, and sends it even if an interceptor does not return.
//
// The intercepting registry embeds the registry, and runs it in the same actor: operations that
// interceptors hold and calls that wait in sessions have one common bound, which two
// mailboxes could not keep exactly.
type intercepting struct {
	*registry
	run           actors.Runner // the interceptors, around list
	list          actors.Runner // the lister, around the Runner that passes operations on
	interceptions interceptions
	stopTimer     *time.Timer // sends stopDue
}

// From the goroutines of interceptors, and from timers, to the intercepting registry.
type (
	// passedOn brings a call that interceptors have passed on.
	passedOn struct {
		of   *interception
		call *contract.Call
	}
	// withdrawn cancels a call that was passed on.
	withdrawn struct{ call *contract.Call }
	// intercepted brings the reply that interceptors returned. own is true for a failure
	// that an interceptor made, perhaps after the operation had run.
	intercepted struct {
		of    *interception
		reply messages.Reply
		own   bool
	}
	// interceptionDue says that the interceptors of an operation have used up their time.
	interceptionDue struct{ of *interception }
	// stopDue says that all interceptors have used up their time, because the registry
	// stops.
	stopDue struct{}
)

// overtime is how long interceptors have, after the deadline or after a cancellation, to
// return the outcome of the operation.
const overtime = 500 * time.Millisecond

// newIntercepting returns the intercepting registry around a registry.
func newIntercepting(r *registry) *intercepting {
	f := &intercepting{registry: r, interceptions: newInterceptions()}
	r.cancelIntercepted.named, r.cancelIntercepted.scope = f.cancelNamed, f.cancelScope
	return f
}

// Receive does what that of the registry does.
func (f *intercepting) Receive(c actor.Context) {
	defer f.recoverBug(c.Message(), c.Sender())
	if _, is := c.Message().(*actor.Started); is {
		f.onStarted(c)
	}
	f.handle(c.Message(), c.Sender())
	f.settle()
}

// handle handles operations and the messages of interceptors, and gives the rest to the
// registry.
func (f *intercepting) handle(msg any, from *actor.PID) {
	if cmd, ok := protocol.AsPointer[messages.Command](msg); ok && !protocol.IsForeign(cmd) {
		msg = cmd
	}
	switch msg := msg.(type) {
	case *actor.Stopped:
		f.onStopped(msg)
	case messages.Operation:
		if !f.isForeign(msg, from) {
			f.onOperation(f.newCall(msg, from))
		}
	case *protocol.ClientCall:
		if !f.isForeign(msg.Op, from) {
			f.onOperation(f.newClientCall(msg, from))
		}
	case *protocol.ResentCall:
		f.onResentCall(msg, from)
	case *listAsked:
		f.onListAsked(msg)
	case *listReturned:
		f.onListReturned(msg)
	case *protocol.Stop:
		f.onStop(msg)
	case *passedOn:
		f.onPassedOn(msg)
	case *withdrawn:
		f.onWithdrawn(msg.call)
	case *intercepted:
		f.onIntercepted(msg)
	case *interceptionDue:
		f.onInterceptionDue(msg.of)
	case *stopDue:
		f.onStopDue()
	default:
		f.registry.handle(msg, from)
	}
}

// onStarted makes the Runner of the interceptors. If one of them panics, no operation
// passes.
func (f *intercepting) onStarted(c actor.Context) {
	f.self, f.spawn = c.Self(), func(props *actor.Props) *actor.PID { return c.SpawnPrefix(props, "session") }
	f.run = func(context.Context, messages.Operation) (messages.Result, error) {
		return nil, errors.New("an interceptor panicked when the supervisor started")
	}
	f.list = lister{f.cfg, f.mailbox, passOn(c.ActorSystem(), f.mailbox)}.run
	f.run = chain(f.cfg.Interceptors, f.list)
}

// onOperation runs an operation through the interceptors. Operations that the registry
// rejects without a session go to the registry at once, and so do all that nothing intercepts.
func (f *intercepting) onOperation(k *contract.Call) {
	limits := f.table.Limits(k.Key.Server)
	asks, _ := contract.AsksCatalogue(k.Op)
	switch waiting := f.table.Waiting + f.unpassed; {
	case len(f.cfg.Interceptors) == 0 && !asks, refusal.Malformed(k) != nil || f.table.Stopping || !time.Now().Before(k.Deadline) || f.refusal.Orphaned(k) != nil:
		f.accept(k)
	case k.List == (messages.Key{}) && f.handBack(k): // the interceptors of the member that owns the key run
	case waiting >= f.cfg.MaxWaitingTotal:
		f.respond(k.Caller, k.Failure(messages.CodeBusy, fmt.Sprintf("%d calls of all sessions are waiting (MaxWaitingTotal)", waiting)))
	case f.interceptions.count[k.Key] >= limits.MaxInFlight+limits.MaxWaiting:
		f.respond(k.Caller, k.Failure(messages.CodeBusy, "too many operations of this session are with the interceptors (MaxInFlight, MaxWaiting)"))
	default:
		f.intercept(k)
	}
}

// onResentCall runs an operation of another member through the interceptors, unless it has passed
// them there. If that asks for a list, the lister runs it.
func (f *intercepting) onResentCall(msg *protocol.ResentCall, from *actor.PID) {
	switch {
	case f.isForeign(msg.Op, from):
	case msg.Intercepted && msg.List == (messages.Key{}):
		f.accept(f.newResentCall(msg, from))
	default:
		f.onOperation(f.newResentCall(msg, from))
	}
}

// intercept runs the interceptors around a call.
func (f *intercepting) intercept(k *contract.Call) {
	ctx, cancel := context.WithDeadline(context.Background(), k.Deadline)
	i := &interception{Call: k, cancel: cancel}
	i.timer = contract.After(f.mailbox, time.Until(k.Deadline)+overtime, &interceptionDue{i})
	f.interceptions.add(i)
	f.owners.Accepted(k, func() { f.cancelOne(i, refusal.OwnerTerminated) })
	f.unpassed++
	f.pending++

	h := *k.Op.Head()
	h.Key, h.Deadline = k.Key, k.Deadline
	op, run := messages.With(k.Op, h), f.run
	if k.Intercepted {
		run = f.list
	}
	f.cfg.Async(f.mailbox, func() any { return i.run(ctx, run, op) })
}

// onPassedOn gives the registry a call that interceptors have passed on, unless the caller
// has its reply already.
func (f *intercepting) onPassedOn(msg *passedOn) {
	if !f.interceptions.has(msg.of) || msg.of.cancelled {
		f.cfg.Post.Send(msg.call.Caller, msg.call.Failure(messages.CodeCancelled, "the operation was cancelled"))
		return
	}
	if !msg.of.passesOn {
		msg.of.passesOn = true
		f.unpassed--
	}
	f.accept(msg.call)
}

// onWithdrawn cancels a call that was passed on, also if it was handed back since.
func (f *intercepting) onWithdrawn(k *contract.Call) {
	cancelCall(k, "")
	if !f.owns(k.Key) && k.Op.RequestID() != "" {
		f.cfg.Post.Send(f.cluster.HandBack, &protocol.Withdrawn{Cancel: &messages.Cancel{Key: k.Key, ID: k.Op.RequestID()}})
	}
}

// onIntercepted answers an operation with what its interceptors returned.
func (f *intercepting) onIntercepted(msg *intercepted) {
	if failure, ok := msg.reply.(*messages.Failure); ok && msg.own {
		failure.MayHaveRun = msg.of.mayHaveRun()
	}
	f.reply(msg.of, msg.reply)
}

// cancelNamed cancels the operations of an id that run through the interceptors.
func (f *intercepting) cancelNamed(key messages.Key, id string) {
	for i := range f.interceptions.of(key, id) {
		f.cancelLater(i, "")
	}
}

// cancelScope cancels the operations of a scope that run through the interceptors. It returns how
// many had not been passed on.
func (f *intercepting) cancelScope(scope string, upTo uint64, detail string) (count int) {
	for i := range f.interceptions.ofScope(scope).All() {
		if i.Serial > upTo {
			continue
		}
		if !i.passesOn {
			count++
		}
		f.cancelLater(i, detail)
	}
	return count
}

// cancelLater cancels one operation in its turn.
func (f *intercepting) cancelLater(i *interception, detail string) {
	if !i.Call.Cancelled {
		i.Call.Cancelled = true
		f.cancellations.Add(i.Key, func() { f.cancelOne(i, detail) })
	}
}

// cancelOne cancels one operation. If a call was passed on, the session answers that call,
// and the interceptors return its failure.
func (f *intercepting) cancelOne(i *interception, detail string) {
	switch {
	case i.cancelled || !f.interceptions.has(i):
		return
	case !i.passesOn:
		f.fail(i, messages.CodeCancelled, detail)
		return
	}
	i.cancelled = true
	i.cancel()
	i.timer.Stop()
	i.timer = contract.After(f.mailbox, overtime, &interceptionDue{i})
}

// onInterceptionDue answers an operation whose interceptors are too slow.
func (f *intercepting) onInterceptionDue(i *interception) {
	code := messages.CodeDeadline
	switch {
	case i.cancelled:
		code = messages.CodeCancelled
	case time.Now().Before(i.Deadline):
		code = messages.CodeClosed // the registry stops
	}
	f.fail(i, code, "an interceptor did not return")
}

// fail answers an operation without waiting for its interceptors any longer.
func (f *intercepting) fail(i *interception, code messages.Code, detail string) {
	failure := i.Failure(code, detail)
	failure.MayHaveRun = i.mayHaveRun()
	f.reply(i, failure)
}

// reply answers an operation, once.
func (f *intercepting) reply(i *interception, reply messages.Reply) {
	if !f.interceptions.has(i) {
		return
	}
	f.interceptions.remove(i)
	f.owners.Answered(i.Call)
	f.pending--
	if !i.passesOn {
		f.unpassed--
	}
	i.timer.Stop()
	i.cancel()
	f.cfg.Post.Send(i.Caller, reply)
	f.stopIfEmpty()
}

// onStop stops the registry. The interceptors have as much time as a session has to close.
func (f *intercepting) onStop(msg *protocol.Stop) {
	if !f.table.Stopping && f.interceptions.all.Count > 0 {
		drainTime, closeTime := f.table.Slowest()
		f.stopTimer = contract.After(f.mailbox, drainTime+closeTime, &stopDue{})
	}
	f.registry.handle(msg, nil)
}

// onStopDue answers the operations whose interceptors have not returned, in steps.
func (f *intercepting) onStopDue() {
	f.do(&job{step: func() (more bool) {
		n := 0
		for i := range f.interceptions.all.All() {
			if n++; n > contract.WalkStep {
				return true
			}
			f.onInterceptionDue(i)
		}
		return false
	}})
}

// onStopped answers the operations that are left. There may be some, because user code can
// stop any actor.
func (f *intercepting) onStopped(msg *actor.Stopped) {
	f.finished = true
	if f.stopTimer != nil {
		f.stopTimer.Stop()
	}
	for i := range f.interceptions.all.All() {
		f.fail(i, messages.CodeClosed, "the supervisor was stopped")
	}
	f.registry.handle(msg, nil)
}
