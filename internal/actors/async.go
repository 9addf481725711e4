package actors

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// async runs f, which may block, in a goroutine, and sends its result to an actor.
func (cfg *Config) async(to *mailbox.Mailbox, f func() any) {
	cfg.dispatcher.Schedule(func() { to.PostUserMessage(f()) })
}

// runsOn returns the options of an actor that has this mailbox.
func (cfg *Config) runsOn(m *mailbox.Mailbox) []actor.PropsOption {
	m.Post = cfg.Post
	return []actor.PropsOption{actor.WithMailbox(func() actor.Mailbox { return m }), actor.WithDispatcher(cfg.dispatcher)}
}

// after sends a message to an actor after d.
func after(to *mailbox.Mailbox, d time.Duration, msg any) *time.Timer {
	return time.AfterFunc(d, func() { to.PostUserMessage(msg) })
}

// unresponsiveAfter is how long a call may ignore the end of its context before it is
// given up.
const unresponsiveAfter = 2500 * time.Millisecond

// dial opens a connection. It gives up a dialer that ignores the end of its context, as a
// wrapper of the bridge may do.
func dial(ctx context.Context, d mcpbridge.Dialer, req mcpbridge.DialRequest) (mcpbridge.Conn, error) {
	type outcome struct {
		conn mcpbridge.Conn
		err  error
	}
	done := make(chan outcome)
	over := make(chan struct{})
	go func() {
		var o outcome
		defer func() {
			if r := recover(); r != nil {
				o = outcome{err: panicked(r)}
			}
			select {
			case done <- o:
			case <-over:
				if o.conn != nil {
					closeWithin(unresponsiveAfter, o.conn.Close) //nolint:errcheck // nobody is left who could be told
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

// closeWithin runs f, which closes or detaches a connection, with a timeout.
func closeWithin(timeout time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return runWithin(ctx, "closing", f)
}

// runWithin runs f, and gives it up if it ignores the end of its context.
func runWithin(ctx context.Context, what string, f func(context.Context) error) error {
	done := make(chan error, 1)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- panicked(r)
			}
		}()
		done <- f(ctx)
	}()
	if err, ok := receiveWithin(ctx, done); ok {
		return err
	}
	return errors.New(what + " does not return")
}

// receiveWithin receives a value until unresponsiveAfter the end of a context.
func receiveWithin[T any](ctx context.Context, from <-chan T) (value T, ok bool) {
	select {
	case value = <-from:
		return value, true
	case <-ctx.Done():
	}
	timer := time.NewTimer(unresponsiveAfter)
	defer timer.Stop()
	select {
	case value = <-from:
		return value, true
	case <-timer.C:
		return value, false
	}
}

// panicked returns the error for a panic in code of the caller.
func panicked(r any) error {
	return &mcpbridge.Error{
		Class: mcpbridge.Internal, Sent: true, Detail: fmt.Sprintf("panic: %T", r),
		Err: fmt.Errorf("panic: %v\n%s", r, debug.Stack()),
	}
}
