package bridge

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/doubt"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// The methods of this file are called by operations: before they are sent, and after they were refused in doubt.

const (
	// verdictTimeout is how long a refused operation waits for a verdict. errorTimeout is the same for one that was
	// refused with a JSON-RPC error on 200, which is probably its own answer.
	verdictTimeout = 5 * time.Second
	errorTimeout   = time.Second
	// answerTime is how long before its deadline an operation stops waiting, so that the caller gets the reply in time.
	answerTime = verdictTimeout / 50
)

// admit returns nil when an operation may be sent. After a check was refused, it waits for the verdict. With untilHeard,
// it also waits while the session is unheard. Its error says that the operation was not sent.
func (d *doubts) admit(ctx context.Context, untilHeard bool) (e *mcpbridge.Error) {
	for d.holds.Load() {
		var i *doubt.Inquiry
		var until time.Time
		d.note(func(m *doubt.Machine, s doubt.Session) { i, until, e = m.Admit(s, untilHeard) })
		switch {
		case i == nil:
			return e
		case d.wait(ctx, i, until):
		case !until.IsZero():
			return nil // the caller notices the end of ctx
		default:
			untilHeard = false
		}
	}
	return nil
}

// settle waits for the verdict on an error in doubt, within bounds. It returns the error without doubt, or
// one that says that the session is gone. Without a verdict it returns the error as it is.
func (d *doubts) settle(ctx context.Context, op messages.Operation, ex *wire.Exchange, e *mcpbridge.Error) *mcpbridge.Error {
	switch {
	case !e.Doubt:
		return e
	case isAboutResource(op, e):
		return certain(e)
	case wire.EvidenceOf(e).Front:
		return d.settleFront(ctx, op, ex, e)
	case !d.about.state().MayRefuse:
		return certain(e)
	}
	limit, isAnswer := verdictTimeout, e.Status == http.StatusOK && e.Code != 0
	if isAnswer {
		limit = errorTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		i, isAlive := d.inquire(kindOf(op, e))
		switch {
		case isAlive:
			e = certain(e)
			d.note(func(m *doubt.Machine, _ doubt.Session) { m.Name(e) })
			return e
		case i == nil:
			return e
		case !d.wait(ctx, i, time.Time{}):
			if isAnswer {
				return e
			}
			return d.unsettled(e)
		case i.Verdict != doubt.Alive && i.Verdict != doubt.Away: // else this refusal may be later than the checks, or nobody waited
			return i.Outcome(e, ex.HadEarlierRequests(), d.about.state().Resumable)
		}
	}
}

// unsettled returns what a refusal means without a verdict in time. If the server has been away since, it is no refusal of
// the call.
func (d *doubts) unsettled(e *mcpbridge.Error) *mcpbridge.Error {
	var front *mcpbridge.Error
	d.note(func(m *doubt.Machine, _ doubt.Session) { front = m.Unheard() })
	if front == nil {
		return e
	}
	lost := certain(e)
	lost.Class, lost.Session, lost.RetryAfter = mcpbridge.Lost, mcpbridge.Unheard, front.RetryAfter
	lost.Detail, lost.Quote = "the server has refused the call, and does not answer since: "+front.Detail, e.ForCaller()
	return lost
}

// inquire returns the inquiry that settles doubt about a kind of refusal: see [doubt.Machine.Refused].
func (d *doubts) inquire(k doubt.Kind) (i *doubt.Inquiry, isAlive bool) {
	d.note(func(m *doubt.Machine, s doubt.Session) { i, isAlive = m.Refused(s, k) })
	return i, isAlive
}

// settleFront returns what the answer of a front means. A page with 404 or 410 may be the server's own refusal of a
// session that it does not know: the operation waits for the verdict.
func (d *doubts) settleFront(ctx context.Context, op messages.Operation, ex *wire.Exchange, e *mcpbridge.Error) *mcpbridge.Error {
	ctx, cancel := context.WithTimeout(ctx, verdictTimeout)
	defer cancel()
	i := d.unheard(op, e)
	for i != nil && wire.IsMissing(e.Status) && d.wait(ctx, i, time.Time{}) {
		if i.Verdict == doubt.Dead {
			return i.Outcome(e, ex.HadEarlierRequests(), d.about.state().Resumable)
		}
		if i.Verdict != doubt.Away { // with this verdict it ended because nobody waited for it
			break
		}
		i = d.unheard(op, e)
	}
	unheard := certain(e)
	unheard.Session = mcpbridge.Unheard
	return unheard
}

// unheard notes that a front has answered in place of the server: see [doubt.Machine.Front].
func (d *doubts) unheard(op messages.Operation, e *mcpbridge.Error) (i *doubt.Inquiry) {
	d.note(func(m *doubt.Machine, s doubt.Session) { i = m.Front(s, kindOf(op, e), e) })
	return i
}

// wait waits for the end of an inquiry. It returns false if ctx ends first, if its deadline is near, or at the time
// until, unless that is zero.
func (d *doubts) wait(ctx context.Context, i *doubt.Inquiry, until time.Time) bool {
	if at, ok := ctx.Deadline(); ok && (until.IsZero() || at.Add(-answerTime).Before(until)) {
		until = at.Add(-answerTime)
	}
	d.note(func(m *doubt.Machine, _ doubt.Session) { m.Wait() })
	defer d.note(func(m *doubt.Machine, _ doubt.Session) { m.Leave() })
	var due <-chan time.Time
	if !until.IsZero() {
		due = time.After(time.Until(until))
	}
	select {
	case <-i.Done:
		return true
	case <-due:
	case <-ctx.Done():
	}
	return false
}

// kindOf returns the kind of a refusal.
func kindOf(op messages.Operation, e *mcpbridge.Error) doubt.Kind {
	tool := ""
	if call, ok := op.(*messages.CallTool); ok {
		tool = call.Params.Name
	}
	return doubt.KindOf(op.Method(), tool, e)
}

// isAboutResource reports whether a refusal repeats the URI of the resource that was read.
func isAboutResource(op messages.Operation, e *mcpbridge.Error) bool {
	read, ok := op.(*messages.ReadResource)
	var said *jsonrpc.Error
	return ok && e.Code == rpc.CodeInvalidParams && errors.As(e.Err, &said) &&
		(strings.Contains(said.Message, read.Params.URI) || bytes.Contains(said.Data, []byte(read.Params.URI)))
}

// certain returns a copy of an error without doubt.
func certain(e *mcpbridge.Error) *mcpbridge.Error {
	settled := *e
	settled.Doubt = false
	return &settled
}
