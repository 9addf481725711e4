package bridge

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// controls opens second sessions, to compare their answers with those of sessions in doubt, and
// keeps those that answer: the next dial of the key adopts such a session, so that the key has
// no third.
type controls struct {
	opener *opener

	mu   sync.Mutex
	kept map[messages.Key]*control
}

// control is a second session that answers what the first session of its key refuses.
type control struct {
	conn  *conn
	first *conn
	ended func()      // says that it has ended, or is adopted
	timer *time.Timer // ends it when nobody adopts it
}

// end ends the second session.
func (k *control) end() {
	k.conn.discard()
	k.ended()
}

// leastWait is the least time that a second session, and then the first, has to answer if the first has
// not answered before.
const leastWait = 500 * time.Millisecond

// compare opens a second session and asks it what c has refused. If the second session
// answers, with the same credentials, and c refuses once more, then c is
// dead, and the second session is kept to be adopted. Otherwise the refusal is
// not about the session, and the second session is ended. isAway is true if c was not answered at all, or by a
// front. The error is that of the opening.
func (cs *controls) compare(ctx context.Context, c *conn, got answers, again []check, isAway bool, p permit) (verdict, *mcpbridge.Error) {
	ctx, cancel := context.WithTimeout(wire.WithoutRefresh(ctx), c.ConnectTimeout)
	defer cancel()
	defer func() { p.ended() }() // unless the second session is kept
	var first answers
	hasID := c.hasID()
	if !hasID { // without an id, the second session takes the place of the first
		first = c.runChecks(ctx, checkTimeout, untilAll, again...)
		if slices.ContainsFunc(again, func(which check) bool { return first[which].read() == readKnown }) {
			return verdictAlive, nil
		}
	}
	began := time.Now()
	second, e := cs.opener.open(ctx, c.at, attempt{
		DialRequest: mcpbridge.DialRequest{Key: c.key, Roots: c.roots.Load()},
		credentials: c.Credentials, control: true,
	})
	if e != nil {
		return judgeOpening(e), e
	}
	p.opened()
	limit := checkTimeout
	if isAway {
		limit = min(limit, max(leastWait, 2*time.Since(began)))
	}
	theirs := second.persist(ctx, limit, again)
	switch {
	case !hasID || theirs == (answers{}):
	case second.sessionID() == c.sessionID(): // the first is known again, but not its state: what it has refused counts
		first = got
	case isAway: // the front may be the server itself
		first = c.runChecks(ctx, limit, untilAll, again...)
	default:
		first = c.persist(ctx, limit, again)
	}
	v := got.judgeControl(again, theirs, first)
	if v == verdictDead && ctx.Err() == nil {
		cs.keep(second, c, p.ended)
		p = freePermit
		return v, nil
	}
	second.discard()
	if v == verdictDead {
		v = verdictUnsettled
	}
	return v, nil
}

// persist asks again what a front has answered: it may stand before several servers, one of which is away.
func (c *conn) persist(ctx context.Context, limit time.Duration, checks []check) (got answers) {
	for range persistence {
		got = c.runChecks(ctx, limit, untilAll, checks...)
		if !got.meetsFront() || !wire.Sleep(ctx, persistPause) {
			break
		}
	}
	return got
}

// compareUntil is compare for a dial, which waits no longer than ctx lasts. What is left
// then is cleaned up in the background.
func (cs *controls) compareUntil(ctx context.Context, c *conn, got answers, again []check) (verdict, *mcpbridge.Error) {
	type found struct {
		verdict
		*mcpbridge.Error
	}
	compared := make(chan found, 1)
	go func() {
		v, e := cs.compare(ctx, c, got, again, true, freePermit)
		compared <- found{v, e}
	}()
	select {
	case f := <-compared:
		return f.verdict, f.Error
	case <-ctx.Done():
		return verdictUnsettled, &mcpbridge.Error{Class: mcpbridge.Unavailable, Detail: "timed out while connecting"}
	}
}

// keep keeps a session until it is adopted, or for a limited time.
func (cs *controls) keep(second, first *conn, ended func()) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if before := cs.kept[second.key]; before != nil && before.timer.Stop() {
		go before.end()
	}
	if cs.kept == nil {
		cs.kept = map[messages.Key]*control{}
	}
	k := &control{conn: second, first: first, ended: ended}
	k.timer = time.AfterFunc(first.ConnectTimeout, func() {
		cs.mu.Lock()
		if cs.kept[second.key] == k {
			delete(cs.kept, second.key)
		}
		cs.mu.Unlock()
		k.end()
	})
	cs.kept[second.key] = k
}

// take returns what is kept for a key, or nil; if first is not nil, only what was opened beside that.
func (cs *controls) take(key messages.Key, first *conn) *control {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	kept := cs.kept[key]
	if kept == nil || first != nil && kept.first != first {
		return nil
	}
	delete(cs.kept, key)
	if !kept.timer.Stop() {
		return nil
	}
	return kept
}

// adopt gives whoever dials the session that is kept for the key, or nil.
func (cs *controls) adopt(ctx context.Context, at *endpoint, req attempt) *conn {
	k := cs.take(req.Key, nil)
	if k == nil {
		return nil
	}
	c := k.conn
	if c.at != at || c.identity != identityOf(req.credentials) || req.Only || c.hasExpired() || ctx.Err() != nil {
		go k.end() // whoever dials has no time for it
		return nil
	}
	k.ended()
	c.IsControl.Store(false)
	c.belongsTo(req.DialRequest)
	return c
}

// endFor ends the session that is kept beside a first one. It may be called again if it failed.
func (cs *controls) endFor(ctx context.Context, first *conn) error {
	k := cs.take(first.key, first)
	if k == nil {
		return nil
	}
	if err := k.conn.Close(ctx); err != nil {
		cs.keep(k.conn, first, k.ended)
		return fmt.Errorf("the second session, which was opened to settle doubt: %w", err)
	}
	k.ended()
	return nil
}

// end ends the sessions that are kept.
func (cs *controls) end() {
	cs.mu.Lock()
	all := cs.kept
	cs.kept = nil
	cs.mu.Unlock()
	for _, kept := range all {
		if kept.timer.Stop() {
			kept.end()
		}
	}
}
