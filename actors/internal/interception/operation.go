package interception

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/ring"
	"github.com/mcpactor/mcpactor/internal/callbook"
	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// operation is an operation that runs through the interceptors. The registry owes its
// caller the reply. What the interceptors pass on are calls of their own, whose replies
// go to the interceptors.
type operation struct {
	*contract.Call
	cancel    context.CancelFunc  // ends the context of the interceptors
	due       alarm.Entry[func()] // when the interceptors have used up their time
	passesOn  bool                // at least one call was passed on
	cancelled bool                // by the caller, after a call was passed on

	node          ring.Node[*operation] // among those with the same key and id
	among, beside ring.Node[*operation] // all, and those of the scope
}

// mayHaveRun reports whether the operation may have run, on this member or on another one.
func (i *operation) mayHaveRun() bool { return i.passesOn || i.Call.MayHaveRun() }

// run runs the interceptors, and returns the reply for the caller. It may block.
func (i *operation) run(ctx context.Context, run actors.Runner, op messages.Operation) (msg *intercepted) {
	defer func() {
		if reason := recover(); reason != nil {
			reply := i.Failure(messages.CodeInternal, fmt.Sprintf("an interceptor panicked: %T", reason))
			msg = &intercepted{of: i, reply: reply, own: true}
		}
	}()
	result, err := run(operationContext{ctx, i}, op)
	reply, own := i.replyFor(result, err)
	return &intercepted{i, reply, own}
}

// replyFor returns the reply for what the interceptors returned. own is true for a
// failure that is not that of a call that was passed on.
func (i *operation) replyFor(result messages.Result, err error) (reply messages.Reply, own bool) {
	var f *messages.Failure
	switch {
	case err == nil && result == nil:
		return i.Failure(messages.CodeInternal, "an interceptor returned neither a result nor an error"), true
	case err == nil:
		return readdressed(result, i.Call), false
	case errors.As(err, &f) && f != nil:
		copied, mine := *f, i.Failure(f.Code, f.Detail)
		copied.Key, copied.ID, copied.Op, copied.Target, copied.Supervisor = mine.Key, mine.ID, mine.Op, mine.Target, mine.Supervisor
		return &copied, false
	}
	f = i.Failure(messages.CodeRefused, err.Error())
	f.Cause = err
	return f, true
}

// readdressed returns a result that names the call as its operation: an interceptor may
// have made the result, or may have kept it from another operation.
func readdressed(result messages.Result, k *contract.Call) messages.Result {
	said := result.GetReceipt()
	mine := *said
	mine.Key, mine.ID, mine.Target, mine.Supervisor = k.Key, k.Op.RequestID(), messages.TargetOf(k.Op), k.Supervisor
	if mine.Key == said.Key && mine.ID == said.ID && mine.Target == said.Target && mine.Supervisor == said.Supervisor {
		return result
	}
	from := reflect.ValueOf(result).Elem()
	to := reflect.New(from.Type())
	to.Elem().Set(from)
	copied := to.Interface().(messages.Result)
	*copied.GetReceipt() = mine
	return copied
}

// chain returns a Runner that runs the interceptors, the first one outermost, around
// last.
func chain(interceptors []actors.Interceptor, last actors.Runner) actors.Runner {
	for i := len(interceptors) - 1; i >= 0; i-- {
		if last = interceptors[i](last); last == nil {
			last = func(_ context.Context, op messages.Operation) (messages.Result, error) {
				return nil, messages.NewFailure(op, messages.CodeInternal, fmt.Sprintf("interceptors[%d] returned no runner", i))
			}
		}
	}
	return last
}

// operationKey is the key of the *operation in the context of the interceptors.
type operationKey struct{}

// PrivateKey keeps it from operations that an interceptor causes.
func (operationKey) PrivateKey() {}

// operationContext is the context of the interceptors of one operation.
type operationContext struct {
	context.Context
	of *operation
}

// Value returns the operation, a value of its call, or what ends the context.
func (c operationContext) Value(key any) any {
	if key == (operationKey{}) {
		return c.of
	}
	if value := c.of.Value(key); value != nil {
		return value
	}
	return c.Context.Value(key)
}

// passOn returns the Runner behind the last interceptor: it sends operations to the registry.
func passOn(system *actor.ActorSystem, to *mailbox.Mailbox) actors.Runner {
	return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
		i, ok := ctx.Value(operationKey{}).(*operation)
		switch {
		case !ok:
			return nil, errors.New("an interceptor did not pass on its context")
		case op == nil || protocol.IsForeign(op):
			return nil, i.Failure(messages.CodeInvalid, "an interceptor passed on what is not an operation: "+protocol.NotCommand(op))
		}
		return i.passOn(ctx, system, to, op)
	}
}

// passOn sends an operation to the registry, and waits for the reply.
func (i *operation) passOn(ctx context.Context, system *actor.ActorSystem, to *mailbox.Mailbox, op messages.Operation) (messages.Result, error) {
	future := protocol.NewFuture(system, nil)
	defer future.Close()
	k := &contract.Call{
		Op: op, Key: op.Head().Key.Normal(), Supervisor: i.Supervisor, Caller: future.PID,
		Accepted: time.Now(), Deadline: op.Head().Deadline, Serial: i.Serial,
		PassedOn: true, Intercepted: true,
		Run: contract.Run{Attempts: i.Run.Attempts, Lost: i.Run.Lost}, Ticket: contract.Ticket{Undecided: i.Ticket.Undecided},
	}
	k.List, _ = ctx.Value(listKey{}).(messages.Key)
	k.Record, _ = ctx.Value(recordKey{}).(*callbook.Entry)
	k.Mint = contract.MintOf(ctx)
	if k.Deadline.IsZero() {
		k.Deadline = i.Deadline
	}
	k.Values = new(caller.Values)
	k.Values.Hold(ctx)
	defer k.Values.Release()
	if at, ok := ctx.Deadline(); ok && at.Before(k.Deadline) {
		k.Deadline = at
	}
	to.PostUserMessage(&passedOn{of: i, call: k})
	select {
	case msg := <-future.Reply:
		return outcomeOf(k, msg)
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) { // the session knows the deadline
			to.PostUserMessage(&withdrawn{k})
		}
	}
	timer := time.NewTimer(overtime / 2)
	defer timer.Stop()
	select {
	case msg := <-future.Reply:
		return outcomeOf(k, msg)
	case <-timer.C:
		f := messages.NewFailure(op, messages.CodeCancelled, "") // the call is its session's still
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			f.Code = messages.CodeDeadline
		}
		f.Supervisor, f.MayHaveRun = i.Supervisor, true
		return nil, f
	}
}

// outcomeOf returns a reply as a Runner does.
func outcomeOf(k *contract.Call, msg any) (messages.Result, error) {
	switch reply := msg.(type) {
	case *messages.Failure:
		return nil, reply
	case messages.Result:
		return reply, nil
	}
	return nil, k.Failure(messages.CodeClosed, "the supervisor has stopped") // a dead letter
}

// operations are the operations that run through the interceptors. Adding and
// removing one takes constant time, and so does finding each one of an id or of a scope.
type operations struct {
	all    ring.Ring[*operation]
	count  map[messages.Key]int // of each key
	named  ring.Map[operationName, *operation]
	scopes ring.Map[string, *operation]
}

// operationName is how a [messages.Cancel] names an operation.
type operationName struct {
	key messages.Key
	id  string
}

// name returns the name of the operation.
func (i *operation) name() operationName { return operationName{i.Key, i.Op.RequestID()} }

// newOperations returns operations without any operation.
func newOperations() operations {
	return operations{
		count: map[messages.Key]int{}, named: ring.Map[operationName, *operation]{}, scopes: ring.Map[string, *operation]{},
	}
}

// has reports whether an operation still runs through the interceptors.
func (s *operations) has(i *operation) bool {
	return i.among.In != nil
}

// add adds an operation.
func (s *operations) add(i *operation) {
	s.all.Push(&i.among, i)
	s.count[i.Key]++
	s.scopes.Push(i.Key.Scope, &i.beside, i)
	if name := i.name(); name.id != "" { // else it cannot be cancelled
		s.named.PushFront(name, &i.node, i)
	}
}

// remove removes an operation.
func (s *operations) remove(i *operation) {
	s.all.Remove(&i.among)
	s.scopes.Remove(i.Key.Scope, &i.beside)
	s.named.Remove(i.name(), &i.node)
	if s.count[i.Key]--; s.count[i.Key] == 0 {
		delete(s.count, i.Key)
	}
}

// recordKey is the key of the *callbook.Entry in the context of a durable call.
type recordKey struct{}

// PrivateKey keeps it from operations that the call causes.
func (recordKey) PrivateKey() {}

// listKey is the key of the [messages.Key] of a list in the context of an operation that asks another member for it.
type listKey struct{}

// PrivateKey keeps it from operations that an interceptor causes.
func (listKey) PrivateKey() {}

// AskForList returns a context whose operation asks the member that has a list for it.
func AskForList(ctx context.Context, list messages.Key) context.Context {
	return context.WithValue(ctx, listKey{}, list)
}

// AskedList returns the list for which another member has asked with the operation of a context, or the zero key.
func AskedList(ctx context.Context) messages.Key {
	if i, ok := ctx.Value(operationKey{}).(*operation); ok {
		return i.List
	}
	return messages.Key{}
}

// Messages of the goroutines of interceptors to the registry.
type (
	// passedOn brings a call that interceptors have passed on.
	passedOn struct {
		of   *operation
		call *contract.Call
	}
	// withdrawn cancels a call that was passed on.
	withdrawn struct{ call *contract.Call }
	// intercepted brings the reply that interceptors returned. own is true for a failure
	// that an interceptor made, perhaps after the operation had run.
	intercepted struct {
		of    *operation
		reply messages.Reply
		own   bool
	}
)

// About returns the id of the call.
func (m *passedOn) About() string { return m.call.Op.RequestID() }

// About returns the id of the call.
func (m *withdrawn) About() string { return m.call.Op.RequestID() }

// About returns the id of the operation.
func (m *intercepted) About() string { return m.of.Op.RequestID() }

// overtime is how long interceptors have, after the deadline or after a cancellation, to
// return the outcome of the operation.
const overtime = 500 * time.Millisecond
