package contract

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Async runs f, which may block, in a goroutine, and sends its result to an actor.
func (cfg *Config) Async(to *mailbox.Mailbox, f func() any) {
	cfg.Dispatcher.Schedule(func() { to.PostUserMessage(f()) })
}

// RunsOn returns the options of an actor that has this mailbox.
func (cfg *Config) RunsOn(m *mailbox.Mailbox) []actor.PropsOption {
	m.Post = cfg.Post
	return []actor.PropsOption{actor.WithMailbox(func() actor.Mailbox { return m }), actor.WithDispatcher(cfg.Dispatcher)}
}

// Allowed is the reply of the registry that says whether what a goroutine of a session asked for is allowed.
type Allowed struct{ Is bool }

// IgnoreDeadLetterLogging is for the case that the goroutine no longer waits.
func (*Allowed) IgnoreDeadLetterLogging() {}

// IsAllowed sends a message to the registry, and reports whether the reply is an [Allowed] that says yes. It blocks until the
// reply comes or ctx ends.
func IsAllowed(ctx context.Context, system *actor.ActorSystem, registry *mailbox.Mailbox, msg any) (bool, error) {
	future := protocol.NewFuture(system, nil)
	defer future.Close()
	registry.PostUserMessage(&actor.MessageEnvelope{Message: msg, Sender: future.PID})
	select {
	case reply := <-future.Reply:
		allowed, is := reply.(*Allowed)
		return is && allowed.Is, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// UnresponsiveAfter is how long a call may ignore the end of its context before it is
// given up.
const UnresponsiveAfter = 2500 * time.Millisecond

// Dial opens a connection. It gives up a dialer that ignores the end of its context, as a
// wrapper of the bridge may do.
func Dial(ctx context.Context, d dial.Dialer, req dial.Request) (dial.Conn, error) {
	type outcome struct {
		conn dial.Conn
		err  error
	}
	done := make(chan outcome)
	over := make(chan struct{})
	go func() {
		var o outcome
		defer func() {
			if r := recover(); r != nil {
				o = outcome{err: Panicked(r)}
			}
			select {
			case done <- o:
			case <-over:
				if conn := cmp.Or(o.conn, dial.LeftBy(o.err)); conn != nil {
					CloseWithin(UnresponsiveAfter, conn.Close) //nolint:errcheck // nobody is left who could be told
				}
			}
		}()
		o.conn, o.err = d.Dial(ctx, req)
		if o.conn == nil && o.err == nil {
			o.err = &mcpbridge.Error{Class: mcpbridge.Internal, Detail: "the dialer returned no connection and no error"}
		}
	}()
	defer close(over)
	if o, ok := receiveWithin(ctx, done); ok {
		return o.conn, o.err
	}
	return nil, &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: "the dial does not return", Err: context.Cause(ctx)}
}

// CloseWithin runs f, which closes or detaches a connection, with a timeout.
func CloseWithin(timeout time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return RunWithin(ctx, "closing", f)
}

// RunWithin runs f, and gives it up if it ignores the end of its context.
func RunWithin(ctx context.Context, what string, f func(context.Context) error) error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- Panicked(r)
			}
		}()
		done <- f(ctx)
	}()
	if err, ok := receiveWithin(ctx, done); ok {
		return err
	}
	return errors.New(what + " does not return")
}

// receiveWithin receives a value until UnresponsiveAfter the end of a context.
func receiveWithin[T any](ctx context.Context, from <-chan T) (value T, ok bool) {
	select {
	case value = <-from:
		return value, true
	case <-ctx.Done():
	}
	timer := time.NewTimer(UnresponsiveAfter)
	defer timer.Stop()
	select {
	case value = <-from:
		return value, true
	case <-timer.C:
		return value, false
	}
}

// Panicked returns the error for a panic in code of the caller.
func Panicked(r any) error {
	return &mcpbridge.Error{
		Class: mcpbridge.Internal, Sent: true, Detail: fmt.Sprintf("panic: %T", r),
		Err: fmt.Errorf("panic: %v\n%s", r, debug.Stack()),
	}
}
