package faults

import (
	"context"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Hooks are called around everything that the sessions of a supervisor do. Each
// may be nil. They may be called from several goroutines at once, and may block:
// what they are around then takes that long.
type Hooks struct {
	// BeforeDial may fail a dial, with an [*mcpbridge.Error] or any other error.
	BeforeDial func(ctx context.Context, req mcpbridge.DialRequest) error
	// AfterDial is told what a dial came to. It may fail one that succeeded: the
	// connection is closed then. Returning nil changes nothing.
	AfterDial func(ctx context.Context, req mcpbridge.DialRequest, err error) error
	// BeforeCall may fail an operation that was not sent.
	BeforeCall func(ctx context.Context, key messages.Key, op messages.Operation) error
	// AfterCall may change what an operation came to.
	AfterCall func(ctx context.Context, key messages.Key, op messages.Operation, result messages.Result, err error) (messages.Result, error)
	// BeforeClose may fail the closing of a connection, which then stays open.
	BeforeClose func(ctx context.Context, key messages.Key) error
	// AfterClose is told what closing, or letting go, has come to.
	AfterClose func(key messages.Key, err error)
}

// closeLimit bounds the closing of a connection that a hook did not want.
const closeLimit = 5 * time.Second

// Wrap returns what goes into supervisor.Config.WrapDialer.
func (h Hooks) Wrap(inner mcpbridge.Dialer) mcpbridge.Dialer { return &dialer{inner, h} }

type dialer struct {
	inner mcpbridge.Dialer
	hooks Hooks
}

// Dial dials between the hooks.
func (d *dialer) Dial(ctx context.Context, req mcpbridge.DialRequest) (mcpbridge.Conn, error) {
	if d.hooks.BeforeDial != nil {
		if err := d.hooks.BeforeDial(ctx, req); err != nil {
			return nil, err
		}
	}
	inner, err := d.inner.Dial(ctx, req)
	if d.hooks.AfterDial != nil {
		if failure := d.hooks.AfterDial(ctx, req, err); failure != nil {
			if err == nil {
				closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
				defer cancel()
				inner.Close(closing) //nolint:errcheck // the hook's error is the one to report
			}
			err = failure
		}
	}
	if err != nil {
		return nil, err
	}
	return &conn{Conn: inner, hooks: &d.hooks, key: req.Key}, nil
}

type conn struct {
	mcpbridge.Conn
	hooks *Hooks
	key   messages.Key
}

// Do runs an operation between the hooks.
func (c *conn) Do(ctx context.Context, op messages.Operation) (messages.Result, error) {
	if c.hooks.BeforeCall != nil {
		if err := c.hooks.BeforeCall(ctx, c.key, op); err != nil {
			return nil, err
		}
	}
	result, err := c.Conn.Do(ctx, op)
	if c.hooks.AfterCall != nil {
		return c.hooks.AfterCall(ctx, c.key, op, result, err)
	}
	return result, err
}

// Close closes between the hooks.
func (c *conn) Close(ctx context.Context) error { return c.end(ctx, c.Conn.Close) }

// Detach lets go between the hooks.
func (c *conn) Detach(ctx context.Context) error { return c.end(ctx, c.Conn.Detach) }

func (c *conn) end(ctx context.Context, end func(context.Context) error) error {
	if c.hooks.BeforeClose != nil {
		if err := c.hooks.BeforeClose(ctx, c.key); err != nil {
			return err
		}
	}
	err := end(ctx)
	if c.hooks.AfterClose != nil {
		c.hooks.AfterClose(c.key, err)
	}
	return err
}
