package session

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
)

// errLeft ends a dial whose MCP session is to be left open: its connection, if there is one yet, is only detached.
var errLeft = errors.New("the MCP session is left open")

// dials has the dial that runs, if there is one, and counts what dials have left.
type dials struct {
	cfg  *contract.Config
	to   *mailbox.Mailbox // of the session
	last *lastSession

	abort   context.CancelCauseFunc // of the dial that runs, which then returns with dialed; or nil
	closing int                     // how many connections that dials have left are being closed
}

// start runs a dial. If it was aborted and still opens a connection, the connection is
// closed, unless its MCP session is to be left open. dialed follows.
func (d *dials) start(life context.Context, a dialAttempt) {
	wanted, abort := context.WithCancelCause(life)
	d.abort = abort
	to := d.to
	go func() {
		msg := a.run(wanted)
		to.PostUserMessage(msg)
		if conn := cmp.Or(msg.conn, msg.left); conn != nil && errors.Is(context.Cause(wanted), context.Canceled) {
			contract.CloseWithin(a.limits.CloseTimeout, conn.Close) //nolint:errcheck // a session that still runs closes it, too, and reports the error
		}
	}()
}

// isRunning reports whether a dial runs.
func (d *dials) isRunning() bool { return d.abort != nil }

// end aborts the dial that runs, if there is one. The cause is errLeft, or nil.
func (d *dials) end(cause error) {
	if d.isRunning() {
		d.abort(cause)
	}
}

// returned notes that the dial has returned, and closes what it has left. Draining waits for this; the next dial does not.
// leftClosed follows.
func (d *dials) returned(msg *dialed, timeout time.Duration) {
	d.abort = nil
	if msg.left == nil {
		return
	}
	d.closing++
	d.cfg.Async(d.to, func() any { return &leftClosed{msg.left, contract.CloseWithin(timeout, msg.left.Close)} })
}

// returnedLate is returned for a dial that comes too late. It also notes what is known of the MCP session.
func (d *dials) returnedLate(msg *dialed, timeout time.Duration) {
	d.last.openedLate(msg)
	d.returned(msg, timeout)
}
