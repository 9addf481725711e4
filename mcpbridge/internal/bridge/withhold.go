package bridge

import (
	"context"
	"net/http"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// This file decides whether operations are sent, and has what they wait for: a moment while a question was refused,
// and the verdict after they were refused themselves.

const (
	// verdictTimeout is how long a caller waits for a verdict, and errorTimeout how long with an
	// error that is the whole answer.
	verdictTimeout = 5 * time.Second
	errorTimeout   = time.Second
	// answerTime is what is left of a deadline for the reply.
	answerTime = verdictTimeout / 50
)

// admit lets an operation be sent. It waits for a moment while a question was refused, and, with untilHeard, while
// the session is unheard. An error says that the operation was not sent.
func (d *doubts) admit(ctx context.Context, untilHeard bool) *mcpbridge.Error {
	for d.holds.Load() {
		d.mu.Lock()
		i, front, until := d.running, d.front, d.until
		switch {
		case d.dead != nil:
			d.mu.Unlock()
			return d.notSent()
		case d.ended, d.about.untilCut().Err() != nil, front == nil && (i == nil || !time.Now().Before(until)):
			d.mu.Unlock()
			return nil
		case front != nil && !untilHeard:
			d.mu.Unlock()
			return &mcpbridge.Error{Class: mcpbridge.Unavailable, Session: mcpbridge.Unheard, Withheld: true, Detail: front.Detail, RetryAfter: front.RetryAfter}
		case i == nil:
			i = d.start(kind{})
		}
		if front != nil {
			until = time.Time{}
		}
		d.mu.Unlock()
		if !d.wait(ctx, i.done, until) {
			if front == nil {
				return nil // the caller notices
			}
			untilHeard = false
		}
	}
	return nil
}

// notSent returns the error for an operation that was not sent to a session that is dead.
func (d *doubts) notSent() *mcpbridge.Error {
	e := &mcpbridge.Error{Class: mcpbridge.NotSent, Session: mcpbridge.Gone, Withheld: true, Detail: "the server refuses the session"}
	if !d.about.isResumable() {
		e.Session = mcpbridge.Broken
	}
	return e
}

// settle returns what an error means when it is in doubt: the error as it is, or one
// that says that the session is gone. It waits for the verdict, within bounds.
func (d *doubts) settle(ctx context.Context, op messages.Operation, ex *wire.Exchange, e *mcpbridge.Error) *mcpbridge.Error {
	switch {
	case !e.Doubt:
		return e
	case isAboutResource(op, e):
		return certain(e)
	case wire.EvidenceOf(e).Front:
		return d.settleFront(ctx, op, ex, e)
	case !d.about.mayRefuse():
		return certain(e)
	}
	limit := verdictTimeout
	if e.Status == http.StatusOK && e.Code != 0 {
		limit = errorTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for k := kindOf(op, e); ; {
		i, isAlive := d.inquire(k)
		switch {
		case isAlive:
			return d.balance.name(certain(e))
		case i == nil || !d.wait(ctx, i.done, time.Time{}):
			return e
		case i.verdict != verdictAlive: // else the refusal may have come after the question
			return i.outcome(e, ex.HadEarlierRequests(), d.about.isResumable())
		}
	}
}

// settleFront returns what an answer of a front means. A page with 404 or 410 may be the server's own answer to a
// session that it does not know: its caller waits for the verdict.
func (d *doubts) settleFront(ctx context.Context, op messages.Operation, ex *wire.Exchange, e *mcpbridge.Error) *mcpbridge.Error {
	ctx, cancel := context.WithTimeout(ctx, verdictTimeout)
	defer cancel()
	i := d.unheard(op, e)
	for i != nil && wire.IsMissing(e.Status) && d.wait(ctx, i.done, time.Time{}) {
		if i.verdict == verdictDead {
			return i.outcome(e, ex.HadEarlierRequests(), d.about.isResumable())
		}
		if i.verdict != verdictAway { // else it has ended before anybody waited for it
			break
		}
		i = d.unheard(op, e)
	}
	unheard := certain(e)
	unheard.Session = mcpbridge.Unheard
	return unheard
}

// unheard notes that a front has answered in place of the server, and has the session questioned. It returns the
// inquiry, or nil.
func (d *doubts) unheard(op messages.Operation, e *mcpbridge.Error) *inquiry {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.noteFront(e)
	kinds := []kind{{}}
	if wire.IsMissing(e.Status) {
		kinds = append(kinds, kindOf(op, e))
	}
	switch {
	case d.dead != nil:
		return d.dead
	case d.running != nil:
		d.running.later = d.running.later.with(kinds...)
		return d.running
	case d.ended:
		return nil
	}
	return d.start(kinds...)
}

// wait waits for the end of an inquiry. It returns false at a time, if that is not zero, when the deadline of
// ctx is near, or when ctx has ended.
func (d *doubts) wait(ctx context.Context, done <-chan struct{}, until time.Time) bool {
	if at, ok := ctx.Deadline(); ok && (until.IsZero() || at.Add(-answerTime).Before(until)) {
		until = at.Add(-answerTime)
	}
	d.mu.Lock()
	d.waiting++
	d.mu.Unlock()
	defer func() {
		d.mu.Lock()
		d.waiting--
		d.mu.Unlock()
	}()
	timer := time.NewTimer(time.Until(until))
	if until.IsZero() {
		timer.Stop()
	}
	defer timer.Stop()
	select {
	case <-done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}
