package actors

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// Runner runs an operation: it waits for the result, or for a failure, an error of
// type [*messages.Failure].
type Runner func(ctx context.Context, op messages.Operation) (messages.Result, error)

// Interceptor wraps a [Runner], as middleware wraps an http.Handler: it may look
// at an operation or send another one on, look at the result or return another one,
// measure the time, or refuse by returning an error without calling next. A replay
// happens within next, so that each operation is intercepted once.
//
// The outer function is called once, when the supervisor starts. The inner one runs in
// a goroutine of its own for each operation, with a ctx that next wants to have, or
// one made of it. ctx ends at the operation's deadline, and when
// it is cancelled; the caller gets its reply then, whatever the interceptor does.
// An error that is no failure is [messages.CodeRefused] to the caller. Operations
// and results are read-only: copy what is to be changed, see [messages.With].
type Interceptor func(next Runner) Runner

// chain makes one interceptor of several, of which the first is the outermost.
func chain(interceptors []Interceptor, last Runner) Runner {
	for i := len(interceptors) - 1; i >= 0; i-- {
		if last = interceptors[i](last); last == nil {
			last = func(_ context.Context, op messages.Operation) (messages.Result, error) {
				return nil, messages.NewFailure(op, messages.CodeInternal, fmt.Sprintf("interceptors[%d] returned no runner", i))
			}
		}
	}
	return last
}

// interception is an operation on its way through the interceptors. The registry
// owes its caller the reply; what the interceptors send on are calls of their own.
type interception struct {
	*call
	cancel context.CancelFunc
	timer  *time.Timer // sends lapsed
	passed bool        // some of it was sent on
	given  bool        // the caller has given it up

	prev, next *interception // of the same key and id
}

// From an interceptor's goroutine to the registry.
type (
	// passed sends a call on.
	passed struct {
		of   *interception
		call *call
	}
	// withdrawn gives up a call that was sent on.
	withdrawn struct{ call *call }
	// intercepted is what the interceptors have made of an operation. own: it is a
	// refusal of theirs, which may have come after the operation has run.
	intercepted struct {
		of    *interception
		reply messages.Reply
		own   bool
	}
	// lapsed says that the interceptors have had all the time there is.
	lapsed struct{ of *interception }
)

// IgnoreDeadLetterLogging: interceptors may go on when the registry has stopped.
func (*passed) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging: as above.
func (*withdrawn) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging: as above.
func (*intercepted) IgnoreDeadLetterLogging() {}

// overtime is how long interceptors have after the deadline, or after a
// cancellation, to pass on what became of the operation then.
const overtime = 500 * time.Millisecond

type interceptionKey struct{}

// intercepting returns the interceptors around what sends operations on.
func intercepting(system *actor.ActorSystem, registry *actor.PID, interceptors []Interceptor) Runner {
	return chain(interceptors, func(ctx context.Context, op messages.Operation) (messages.Result, error) {
		of, ok := ctx.Value(interceptionKey{}).(*interception)
		if !ok {
			return nil, errors.New("an interceptor did not hand on its context")
		}
		return sendOn(ctx, system, registry, of, op)
	})
}

// intercept sends an operation through the interceptors.
func (r *registry) intercept(c actor.Context, k *call) {
	ctx, cancel := context.WithDeadline(context.Background(), k.deadline)
	i := &interception{call: k, cancel: cancel}
	i.timer = after(c, time.Until(k.deadline)+overtime, &lapsed{i})
	r.intercepted.add(i)
	r.unpassed++

	h := *k.op.Head()
	h.Key, h.Deadline = k.key, k.deadline
	op, run := messages.With(k.op, h), r.chain
	r.cfg.work(c, func() (msg any) {
		defer func() {
			if reason := recover(); reason != nil {
				msg = &intercepted{of: i, reply: k.failure(messages.CodeInternal, fmt.Sprintf("an interceptor panicked: %T", reason)), own: true}
			}
		}()
		result, err := run(context.WithValue(ctx, interceptionKey{}, i), op)
		reply, own := i.settle(result, err)
		return &intercepted{i, reply, own}
	})
}

// settle makes a reply of what the interceptors return.
func (i *interception) settle(result messages.Result, err error) (reply messages.Reply, own bool) {
	var f *messages.Failure
	switch {
	case err == nil && result == nil:
		return i.failure(messages.CodeInternal, "an interceptor returned neither a result nor an error"), true
	case err == nil:
		return readdressed(result, i.call), false
	case errors.As(err, &f) && f != nil:
		mine, own := *f, i.failure(f.Code, f.Detail)
		mine.Key, mine.ID, mine.Op, mine.Target = own.Key, own.ID, own.Op, own.Target
		return &mine, false
	}
	f = i.failure(messages.CodeRefused, err.Error())
	f.Cause = err
	return f, true
}

// sendOn sends an operation to the registry, and waits for the reply.
func sendOn(ctx context.Context, system *actor.ActorSystem, registry *actor.PID, of *interception, op messages.Operation) (messages.Result, error) {
	box := NewInbox(system, nil)
	defer box.Close()
	k := &call{op: op, key: op.Head().Key.Normal(), caller: box.PID, deadline: op.Head().Deadline, serial: of.serial}
	if k.deadline.IsZero() {
		k.deadline = of.deadline
	}
	if at, ok := ctx.Deadline(); ok && at.Before(k.deadline) {
		k.deadline = at
	}
	system.Root.Send(registry, &passed{of, k})
	settle := func(msg any) (messages.Result, error) {
		switch reply := msg.(type) {
		case *messages.Failure:
			return nil, reply
		case messages.Result:
			return reply, nil
		}
		return nil, k.failure(messages.CodeClosed, "the supervisor has stopped") // a dead letter
	}
	select {
	case msg := <-box.Reply:
		return settle(msg)
	case <-ctx.Done():
		if !errors.Is(ctx.Err(), context.DeadlineExceeded) { // which the session knows as well
			system.Root.Send(registry, &withdrawn{k})
		}
	}
	timer := time.NewTimer(overtime / 2)
	defer timer.Stop()
	select {
	case msg := <-box.Reply:
		return settle(msg)
	case <-timer.C:
		f := k.failure(messages.CodeCancelled, "")
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			f.Code = messages.CodeDeadline
		}
		f.MayHaveRun = true
		return nil, f
	}
}

// onPassed takes in a call that interceptors have sent on. When the caller has its
// reply already, nothing runs any more.
func (r *registry) onPassed(c actor.Context, msg *passed) {
	if !r.intercepted.has(msg.of) || msg.of.given {
		c.Send(msg.call.caller, msg.call.failure(messages.CodeCancelled, "the operation was given up"))
		return
	}
	if !msg.of.passed {
		msg.of.passed = true
		r.unpassed--
	}
	r.accept(c, msg.call)
}

// onWithdrawn cancels a call that interceptors have sent on.
func (r *registry) onWithdrawn(c actor.Context, msg *withdrawn) {
	r.tell(c, msg.call.key, &cancelled{call: msg.call})
}

// onIntercepted answers an operation with what the interceptors have made of it.
func (r *registry) onIntercepted(c actor.Context, msg *intercepted) {
	if f, ok := msg.reply.(*messages.Failure); ok && msg.own {
		f.MayHaveRun = msg.of.passed
	}
	r.conclude(c, msg.of, msg.reply)
}

// onGivenUp cancels an operation. What is with its session is answered from there,
// and comes back through the interceptors.
func (r *registry) onGivenUp(c actor.Context, i *interception) {
	switch {
	case i.given:
		return
	case !i.passed:
		r.giveUp(c, i, messages.CodeCancelled, "")
		return
	}
	i.given = true
	i.cancel()
	i.timer.Stop()
	i.timer = after(c, overtime, &lapsed{i})
}

// onLapsed answers for interceptors that are too slow.
func (r *registry) onLapsed(c actor.Context, i *interception) {
	code := messages.CodeDeadline
	switch {
	case i.given:
		code = messages.CodeCancelled
	case time.Now().Before(i.deadline):
		code = messages.CodeClosed // the supervisor stops
	}
	r.giveUp(c, i, code, "an interceptor did not return")
}

// giveUp answers for interceptors that are not waited for any longer.
func (r *registry) giveUp(c actor.Context, i *interception, code messages.Code, detail string) {
	f := i.failure(code, detail)
	f.MayHaveRun = i.passed
	r.conclude(c, i, f)
}

// conclude answers an operation, once.
func (r *registry) conclude(c actor.Context, i *interception, reply messages.Reply) {
	if !r.intercepted.has(i) {
		return
	}
	r.intercepted.remove(i)
	if !i.passed {
		r.unpassed--
	}
	i.timer.Stop()
	i.cancel()
	if i.caller != nil {
		c.Send(i.caller, reply)
	}
	r.stopIfEmpty(c)
}

// hurry gives interceptors no more time than the closing of a session takes.
func (r *registry) hurry(c actor.Context) {
	if len(r.intercepted.all) > 0 {
		r.hurryTimer = after(c, r.cfg.DrainTimeout+r.cfg.CloseTimeout, &hurried{})
	}
}

// onHurried answers for interceptors that have not returned, some at a time.
func (r *registry) onHurried(c actor.Context) {
	n := 0
	for i := range r.intercepted.all {
		if n++; n > sweepStep {
			c.Send(c.Self(), &hurried{})
			return
		}
		r.onLapsed(c, i)
	}
}

// readdressed returns a result that says whose it is: an interceptor may have made
// it up, or kept it from another operation.
func readdressed(result messages.Result, k *call) messages.Result {
	receipt := result.GetReceipt()
	if receipt.Key == k.key && receipt.ID == k.op.RequestID() {
		return result
	}
	from := reflect.ValueOf(result).Elem()
	to := reflect.New(from.Type())
	to.Elem().Set(from)
	copied := to.Interface().(messages.Result)
	copied.GetReceipt().Key, copied.GetReceipt().ID = k.key, k.op.RequestID()
	return copied
}
