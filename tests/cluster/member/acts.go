package member

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/tests/cluster/history"
)

// dialer reports what a member does for keys: what comes here, the lease has let pass.
type dialer struct {
	dial.Dialer
	member string
	acted  func(*history.Act)
	dials  atomic.Int64
}

// Dial opens or resumes a session.
func (d *dialer) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	a := history.Act{Member: d.member, Scope: req.Key.Scope, Dial: d.dials.Add(1), From: time.Now()}
	inner, err := d.Dialer.Dial(ctx, req)
	d.report(a)
	if err != nil {
		return nil, err
	}
	return &conn{inner, d, a}, nil
}

// report reports an act that has ended.
func (d *dialer) report(a history.Act) {
	a.To = time.Now()
	d.acted(&a)
}

// conn is the session of a dial.
type conn struct {
	dial.Conn
	dialer *dialer
	dial   history.Act
}

// Do runs an operation.
func (c *conn) Do(ctx context.Context, op messages.Operation) (messages.Result, error) {
	a := c.dial
	a.Call, a.From = op.Head().ID, time.Now()
	defer func() { c.dialer.report(a) }()
	return c.Conn.Do(ctx, op)
}
