package registry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
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
	defer f.recoverBug(c)
	f.handle(c)
	f.admit(c)
}

// handle handles operations and the messages of interceptors, and gives the rest to the
// registry.
func (f *intercepting) handle(c actor.Context) {
	msg := c.Message()
	if cmd, ok := protocol.AsPointer[messages.Command](msg); ok && !protocol.IsForeign(cmd) {
		msg = cmd
	}
	switch msg := msg.(type) {
	case *actor.Started:
		f.onStarted(c)
	case *actor.Stopped:
		f.onStopped(c)
	case messages.Operation:
		if !f.isForeign(c, msg) {
			f.onOperation(c, f.newCall(c, msg))
		}
	case *protocol.ClientCall:
		if !f.isForeign(c, msg.Op) {
			f.onOperation(c, f.newClientCall(c, msg))
		}
	case *protocol.ResentCall:
		f.onResentCall(c, msg)
	case *listAsked:
		f.onListAsked(msg)
	case *listReturned:
		f.onListReturned(msg)
	case *protocol.Stop:
		f.onStop(c)
	case *passedOn:
		f.onPassedOn(c, msg)
	case *withdrawn:
		f.onWithdrawn(c, msg.call)
	case *intercepted:
		f.onIntercepted(c, msg)
	case *interceptionDue:
		f.onInterceptionDue(c, msg.of)
	case *stopDue:
		f.onStopDue(c)
	default:
		f.registry.handle(c)
	}
}

// onStarted makes the Runner of the interceptors. If one of them panics, no operation
// passes.
func (f *intercepting) onStarted(c actor.Context) {
	f.run = func(context.Context, messages.Operation) (messages.Result, error) {
		return nil, errors.New("an interceptor panicked when the supervisor started")
	}
	f.list = lister{f.cfg, f.mailbox, passOn(c.ActorSystem(), f.mailbox)}.run
	f.run = chain(f.cfg.Interceptors, f.list)
}

// onOperation runs an operation through the interceptors. Operations that the registry
// rejects without a session go to the registry at once, and so do all that nothing intercepts.
func (f *intercepting) onOperation(c actor.Context, k *contract.Call) {
	limits := f.limits(k.Key.Server)
	asks, _ := contract.AsksCatalogue(k.Op)
	switch waiting := f.waiting + f.unpassed; {
	case len(f.cfg.Interceptors) == 0 && !asks, malformed(k) != nil || f.stopping || !time.Now().Before(k.Deadline) || f.orphaned(k) != nil:
		f.accept(c, k)
	case k.List == (messages.Key{}) && f.handBack(c, k): // the interceptors of the member that owns the key run
	case waiting >= f.cfg.MaxWaitingTotal:
		f.respond(c, k.Failure(messages.CodeBusy, fmt.Sprintf("%d calls of all sessions are waiting (MaxWaitingTotal)", waiting)))
	case f.interceptions.count[k.Key] >= limits.MaxInFlight+limits.MaxWaiting:
		f.respond(c, k.Failure(messages.CodeBusy, "too many operations of this session are with the interceptors (MaxInFlight, MaxWaiting)"))
	default:
		f.intercept(c, k)
	}
}

// onResentCall runs an operation of another member through the interceptors, unless it has passed
// them there. If that asks for a list, the lister runs it.
func (f *intercepting) onResentCall(c actor.Context, msg *protocol.ResentCall) {
	switch {
	case f.isForeign(c, msg.Op):
	case msg.Intercepted && msg.List == (messages.Key{}):
		f.accept(c, f.newResentCall(c, msg))
	default:
		f.onOperation(c, f.newResentCall(c, msg))
	}
}

// intercept runs the interceptors around a call.
func (f *intercepting) intercept(c actor.Context, k *contract.Call) {
	ctx, cancel := context.WithDeadline(context.Background(), k.Deadline)
	i := &interception{Call: k, cancel: cancel}
	i.timer = contract.After(f.mailbox, time.Until(k.Deadline)+overtime, &interceptionDue{i})
	f.interceptions.add(i)
	f.own(c, k, func(c actor.Context) { f.cancelOne(c, i, ownerTerminated) })
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
func (f *intercepting) onPassedOn(c actor.Context, msg *passedOn) {
	if !f.interceptions.has(msg.of) || msg.of.cancelled {
		f.cfg.Post.Send(msg.call.Caller, msg.call.Failure(messages.CodeCancelled, "the operation was cancelled"))
		return
	}
	if !msg.of.passesOn {
		msg.of.passesOn = true
		f.unpassed--
	}
	f.accept(c, msg.call)
}

// onWithdrawn cancels a call that was passed on, also if it was handed back since.
func (f *intercepting) onWithdrawn(c actor.Context, k *contract.Call) {
	cancelCall(k, "")
	if !f.owns(k.Key) && k.Op.RequestID() != "" {
		f.cfg.Post.Send(f.cluster.HandBack, &protocol.Withdrawn{Cancel: &messages.Cancel{Key: k.Key, ID: k.Op.RequestID()}})
	}
}

// onIntercepted answers an operation with what its interceptors returned.
func (f *intercepting) onIntercepted(c actor.Context, msg *intercepted) {
	if failure, ok := msg.reply.(*messages.Failure); ok && msg.own {
		failure.MayHaveRun = msg.of.mayHaveRun()
	}
	f.reply(c, msg.of, msg.reply)
}

// cancelNamed cancels the operations of an id that run through the interceptors.
func (f *intercepting) cancelNamed(c actor.Context, key messages.Key, id string) {
	for i := range f.interceptions.of(key, id) {
		f.cancelLater(c, i, "")
	}
}

// cancelScope cancels the operations of a scope that run through the interceptors. It returns how
// many had not been passed on.
func (f *intercepting) cancelScope(c actor.Context, scope string, upTo uint64, detail string) (count int) {
	for i := range f.interceptions.ofScope(scope).All() {
		if i.Serial > upTo {
			continue
		}
		if !i.passesOn {
			count++
		}
		f.cancelLater(c, i, detail)
	}
	return count
}

// cancelLater cancels one operation in its turn.
func (f *intercepting) cancelLater(c actor.Context, i *interception, detail string) {
	if !i.Call.Cancelled {
		i.Call.Cancelled = true
		f.cancellations.add(c, i.Key, func(c actor.Context) { f.cancelOne(c, i, detail) })
	}
}

// cancelOne cancels one operation. If a call was passed on, the session answers that call,
// and the interceptors return its failure.
func (f *intercepting) cancelOne(c actor.Context, i *interception, detail string) {
	switch {
	case i.cancelled || !f.interceptions.has(i):
		return
	case !i.passesOn:
		f.fail(c, i, messages.CodeCancelled, detail)
		return
	}
	i.cancelled = true
	i.cancel()
	i.timer.Stop()
	i.timer = contract.After(f.mailbox, overtime, &interceptionDue{i})
}

// onInterceptionDue answers an operation whose interceptors are too slow.
func (f *intercepting) onInterceptionDue(c actor.Context, i *interception) {
	code := messages.CodeDeadline
	switch {
	case i.cancelled:
		code = messages.CodeCancelled
	case time.Now().Before(i.Deadline):
		code = messages.CodeClosed // the registry stops
	}
	f.fail(c, i, code, "an interceptor did not return")
}

// fail answers an operation without waiting for its interceptors any longer.
func (f *intercepting) fail(c actor.Context, i *interception, code messages.Code, detail string) {
	failure := i.Failure(code, detail)
	failure.MayHaveRun = i.mayHaveRun()
	f.reply(c, i, failure)
}

// reply answers an operation, once.
func (f *intercepting) reply(c actor.Context, i *interception, reply messages.Reply) {
	if !f.interceptions.has(i) {
		return
	}
	f.interceptions.remove(i)
	f.disown(c, i.Call)
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
func (f *intercepting) onStop(c actor.Context) {
	if !f.stopping && f.interceptions.all.Count > 0 {
		drainTime, closeTime := f.slowest()
		f.stopTimer = contract.After(f.mailbox, drainTime+closeTime, &stopDue{})
	}
	f.registry.handle(c)
}

// onStopDue answers the operations whose interceptors have not returned, in steps.
func (f *intercepting) onStopDue(c actor.Context) {
	n := 0
	for i := range f.interceptions.all.All() {
		if n++; n > contract.WalkStep {
			f.mailbox.PostUserMessage(&stopDue{})
			return
		}
		f.onInterceptionDue(c, i)
	}
}

// onStopped answers the operations that are left. There may be some, because user code can
// stop any actor.
func (f *intercepting) onStopped(c actor.Context) {
	f.finished = true
	if f.stopTimer != nil {
		f.stopTimer.Stop()
	}
	for i := range f.interceptions.all.All() {
		f.fail(c, i, messages.CodeClosed, "the supervisor was stopped")
	}
	f.registry.handle(c)
}
