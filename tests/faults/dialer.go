package faults

import (
	"context"
	"time"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// Hooks are called around every dial, call and close of a supervisor's connections.
// Each may be nil. They may be called from several goroutines at once. A hook that
// blocks delays the operation that it belongs to.
type Hooks struct {
	// BeforeDial may return an error, which fails the dial: an [*mcpbridge.Error] or
	// any other.
	BeforeDial func(ctx context.Context, key messages.Key) error
	// AfterDial gets the error of a dial, or nil. If it returns an error the dial fails
	// with it, and a connection that was opened is closed. If it returns nil nothing
	// changes.
	AfterDial func(ctx context.Context, key messages.Key, err error) error
	// BeforeCall may return an error, which fails the operation before it is sent.
	BeforeCall func(ctx context.Context, key messages.Key, op messages.Operation) error
	// AfterCall may change the result and the error of an operation.
	AfterCall func(ctx context.Context, key messages.Key, op messages.Operation, result messages.Result, err error) (messages.Result, error)
	// BeforeClose may return an error, which fails the close. The connection stays
	// open.
	BeforeClose func(ctx context.Context, key messages.Key) error
	// AfterClose gets the error of a close or a detach, or nil.
	AfterClose func(key messages.Key, err error)
}

// closeLimit bounds the close of a connection whose dial AfterDial has failed.
const closeLimit = 5 * time.Second

// Config returns a configuration whose supervisor calls the hooks. A configuration may have several hooks: those that were
// added last are called first.
func (h Hooks) Config(cfg supervisor.Config) supervisor.Config { return dial.Wrap(cfg, h.wrap) }

func (h Hooks) wrap(inner dial.Dialer) dial.Dialer { return &dialer{inner, h} }

type dialer struct {
	inner dial.Dialer
	hooks Hooks
}

// Dial dials between the hooks.
func (d *dialer) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	if d.hooks.BeforeDial != nil {
		if err := d.hooks.BeforeDial(ctx, req.Key); err != nil {
			return nil, err
		}
	}
	inner, err := d.inner.Dial(ctx, req)
	if d.hooks.AfterDial != nil {
		if failure := d.hooks.AfterDial(ctx, req.Key, err); failure != nil {
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
	dial.Conn
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

// Detach detaches between the hooks.
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
