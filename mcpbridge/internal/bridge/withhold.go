package bridge

import (
	"context"
	"net/http"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
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

// admit returns nil when an operation may be sent. After a check was refused, it waits for the verdict, for holdTimeout
// at most. With untilHeard, it also waits while the session is unheard. Its error says that the operation was not sent.
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
				return nil // the caller notices the end of ctx
			}
			untilHeard = false
		}
	}
	return nil
}

// notSent returns the error for an operation that was not sent because the session is dead.
func (d *doubts) notSent() *mcpbridge.Error {
	e := &mcpbridge.Error{Class: mcpbridge.NotSent, Session: mcpbridge.Gone, Withheld: true, Detail: "the server refuses the session"}
	if !d.about.isResumable() {
		e.Session = mcpbridge.Broken
	}
	return e
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
		case i.verdict != verdictAlive: // otherwise this refusal may be later than the checks: inquire again
			return i.outcome(e, ex.HadEarlierRequests(), d.about.isResumable())
		}
	}
}

// settleFront returns what the answer of a front means. A page with 404 or 410 may be the server's own refusal of a
// session that it does not know: the operation waits for the verdict.
func (d *doubts) settleFront(ctx context.Context, op messages.Operation, ex *wire.Exchange, e *mcpbridge.Error) *mcpbridge.Error {
	ctx, cancel := context.WithTimeout(ctx, verdictTimeout)
	defer cancel()
	i := d.unheard(op, e)
	for i != nil && wire.IsMissing(e.Status) && d.wait(ctx, i.done, time.Time{}) {
		if i.verdict == verdictDead {
			return i.outcome(e, ex.HadEarlierRequests(), d.about.isResumable())
		}
		if i.verdict != verdictAway { // with this verdict it ended because nobody waited for it
			break
		}
		i = d.unheard(op, e)
	}
	unheard := certain(e)
	unheard.Session = mcpbridge.Unheard
	return unheard
}

// unheard notes that a front has answered in place of the server, and begins an inquiry. It returns the inquiry, or nil.
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

// wait waits for the end of an inquiry. It returns false if ctx ends first, if its deadline is near, or at the time
// until, unless that is zero.
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
	var due <-chan time.Time
	if !until.IsZero() {
		due = time.After(time.Until(until))
	}
	select {
	case <-done:
		return true
	case <-due:
	case <-ctx.Done():
	}
	return false
}
