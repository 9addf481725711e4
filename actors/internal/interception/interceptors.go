// Package interception runs operations through the interceptors before the registry accepts them, and answers them.
package interception

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/keeper"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/owners"
	"github.com/mcpactor/mcpactor/actors/internal/pace"
	"github.com/mcpactor/mcpactor/actors/internal/refusal"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// Interceptors runs each operation through the interceptors, if there are any, and questions to the catalogue and durable calls
// through the innermost ones, those of the lists, of the book and of the keeper of handles. It gives the calls that they pass on to the registry.
//
//	operation ──▶ interceptors ──passedOn──▶ registry ──▶ session
//	reply     ◀── interceptors ◀──reply───────────────────┘
//
// The interceptors run in a goroutine for each operation. The registry owes the caller the
// reply, and sends it even if one of them does not return. Only its actor uses this type: operations that
// interceptors hold and calls that wait in sessions have one common bound, which two mailboxes could not keep exactly.
type Interceptors struct {
	With
	run      actors.Runner // the interceptors, around own
	own      actors.Runner // the interceptors of the lists and of the book, around the Runner that passes operations on
	all      operations
	unpassed int                 // operations that were not passed on
	stop     alarm.Entry[func()] // when the registry stops, and has waited long enough
}

// With is what interceptors are run with.
type With struct {
	Cfg           *contract.Config
	Mailbox       *mailbox.Mailbox // of the registry
	Table         *table.Table
	Refusal       *refusal.Refusal
	Owners        *owners.Book
	Cancellations *pace.Pace[messages.Key]
	Alarm         *alarm.Alarm[func()]
	Keeper        *keeper.Keeper
	Calls         Calls
}

// Calls takes the calls that interceptors pass on.
type Calls interface {
	Accept(k *contract.Call)        // gives a call to its session, or rejects it
	HandBack(k *contract.Call) bool // gives a call to the member that owns its key, if that is another one
	Withdraw(k *contract.Call)      // cancels a call that was accepted
}

// New returns interceptors that run no operation yet.
func New(with With) *Interceptors {
	f := &Interceptors{With: with, all: newOperations()}
	f.stop.What = f.onStopDue
	return f
}

// Start makes the Runner of the interceptors, around that of the lists, that of the book and that of the keeper. If one of them panics, no operation
// passes.
func (f *Interceptors) Start(system *actor.ActorSystem, lists func(next actors.Runner) actors.Runner) {
	f.run = func(context.Context, messages.Operation) (messages.Result, error) {
		return nil, errors.New("an interceptor panicked when the supervisor started")
	}
	f.own = lists(recorded(f.Cfg.Book, f.Keeper.Interceptor(passOn(system, f.Mailbox))))
	f.run = chain(f.Cfg.Interceptors, f.own)
}

// Count returns how many operations run through the interceptors.
func (f *Interceptors) Count() int { return f.all.all.Count }

// Unpassed returns how many of them were not passed on.
func (f *Interceptors) Unpassed() int { return f.unpassed }

// Submit runs an operation through the interceptors. Operations that the registry
// rejects without a session go to the registry at once, and so do all that nothing intercepts.
func (f *Interceptors) Submit(k *contract.Call) {
	limits := f.Table.Limits(k.Key.Server)
	asks, _ := contract.AsksCatalogue(k.Op)
	asks = asks || k.IsDurable() || f.Keeper.Concerns(k.Op)
	passes := k.Intercepted && k.List == (messages.Key{}) && !k.IsDurable() && !f.Keeper.Concerns(k.Op) // it has passed the interceptors of another member
	switch waiting := f.Table.Waiting + f.unpassed; {
	case passes, len(f.Cfg.Interceptors) == 0 && !asks,
		refusal.Malformed(k) != nil || f.Table.Stopping || !time.Now().Before(k.Deadline) || f.Refusal.Orphaned(k) != nil:
		f.Calls.Accept(k)
	case k.List == (messages.Key{}) && f.Calls.HandBack(k): // the interceptors of the member that owns the key run
	case waiting >= f.Cfg.MaxWaitingTotal:
		f.Cfg.Post.Send(k.Caller, k.Failure(messages.CodeBusy, fmt.Sprintf("%d calls of all sessions are waiting (MaxWaitingTotal)", waiting)))
	case f.all.count[k.Key] >= limits.MaxInFlight+limits.MaxWaiting:
		f.Cfg.Post.Send(k.Caller, k.Failure(messages.CodeBusy, "too many operations of this session are with the interceptors (MaxInFlight, MaxWaiting)"))
	default:
		f.intercept(k)
	}
}

// intercept runs the interceptors around a call.
func (f *Interceptors) intercept(k *contract.Call) {
	ctx, cancel := context.WithDeadline(f.Keeper.Context(context.Background()), k.Deadline)
	i := &operation{Call: k, cancel: cancel}
	i.due.What = func() { f.onDue(i) }
	f.Alarm.Set(&i.due, k.Deadline.Add(overtime))
	f.all.add(i)
	f.Owners.Accepted(k, func() { f.cancel(i, refusal.OwnerTerminated) })
	f.unpassed++

	h := *k.Op.Head()
	h.Key, h.Deadline = k.Key, k.Deadline
	op, run := messages.With(k.Op, h), f.run
	if k.Intercepted {
		run = f.own
	}
	f.Cfg.Async(f.Mailbox, func() any { return i.run(ctx, run, op) })
}

// Receive handles a message of the goroutines of interceptors. It reports whether it was one.
func (f *Interceptors) Receive(msg any) bool {
	switch msg := msg.(type) {
	case *passedOn:
		f.onPassedOn(msg)
	case *withdrawn:
		f.Calls.Withdraw(msg.call)
	case *intercepted:
		if failure, ok := msg.reply.(*messages.Failure); ok && msg.own {
			failure.MayHaveRun = msg.of.mayHaveRun()
		}
		f.reply(msg.of, msg.reply)
	default:
		return false
	}
	return true
}

// onPassedOn gives the registry a call that interceptors have passed on, unless the caller
// has its reply already.
func (f *Interceptors) onPassedOn(msg *passedOn) {
	if !f.all.has(msg.of) || msg.of.cancelled {
		f.Cfg.Post.Send(msg.call.Caller, msg.call.Failure(messages.CodeCancelled, "the operation was cancelled"))
		return
	}
	if !msg.of.passesOn {
		msg.of.passesOn = true
		f.unpassed--
	}
	f.Calls.Accept(msg.call)
}

// Unread answers the call of a message that the registry has not read before it stopped. It reports whether it had one.
func (f *Interceptors) Unread(msg any) bool {
	passed, is := msg.(*passedOn)
	if is {
		f.Cfg.AnswerUnread(passed.call, nil)
	}
	return is
}

// CancelNamed cancels the operations of an id that run through the interceptors.
func (f *Interceptors) CancelNamed(key messages.Key, id string) {
	for i := range f.all.named.Of(operationName{key, id}).All() {
		f.cancelLater(i, "")
	}
}

// CancelScope cancels the operations of a scope that run through the interceptors, up to a serial. It returns how
// many had not been passed on.
func (f *Interceptors) CancelScope(scope string, upTo uint64, detail string) (count int) {
	for i := range f.all.scopes.Of(scope).All() {
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
func (f *Interceptors) cancelLater(i *operation, detail string) {
	if !i.Call.Ticket.Cancelled {
		i.Call.Ticket.Cancelled = true
		f.Cancellations.Add(i.Key, func() { f.cancel(i, detail) })
	}
}

// cancel cancels one operation. If a call was passed on, the session answers that call,
// and the interceptors return its failure.
func (f *Interceptors) cancel(i *operation, detail string) {
	switch {
	case i.cancelled || !f.all.has(i):
		return
	case !i.passesOn:
		f.fail(i, messages.CodeCancelled, detail)
		return
	}
	i.cancelled = true
	i.cancel()
	f.Alarm.Set(&i.due, time.Now().Add(overtime))
}

// onDue answers an operation whose interceptors are too slow.
func (f *Interceptors) onDue(i *operation) {
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
func (f *Interceptors) fail(i *operation, code messages.Code, detail string) {
	failure := i.Failure(code, detail)
	failure.MayHaveRun = i.mayHaveRun()
	f.reply(i, failure)
}

// reply answers an operation, once.
func (f *Interceptors) reply(i *operation, reply messages.Reply) {
	if !f.all.has(i) {
		return
	}
	f.all.remove(i)
	f.Owners.Answered(i.Call)
	if !i.passesOn {
		f.unpassed--
	}
	f.Alarm.Remove(&i.due)
	i.cancel()
	f.Cfg.Post.Send(i.Caller, reply)
}

// Stop answers the operations whose interceptors do not return soon, because the registry stops: they have as much time as a
// session has to close.
func (f *Interceptors) Stop() {
	if !f.Table.Stopping && f.Count() > 0 {
		drainTime, closeTime := f.Table.Servers.Slowest()
		f.Alarm.Set(&f.stop, time.Now().Add(drainTime+closeTime))
	}
}

// onStopDue answers operations whose interceptors have not returned. If there are many, others stay due.
func (f *Interceptors) onStopDue() {
	n := 0
	for i := range f.all.all.All() {
		if n++; n > contract.WalkStep {
			f.Alarm.Set(&f.stop, time.Now().Add(1)) // in another step
			return
		}
		f.onDue(i)
	}
}

// Close answers the operations that are left when the registry has stopped. There may be some, because user code can
// stop any actor.
func (f *Interceptors) Close() {
	for i := range f.all.all.All() {
		f.fail(i, messages.CodeClosed, "the supervisor was stopped")
	}
}
