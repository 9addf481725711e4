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

// controls opens second sessions, and compares their answers with those of sessions in doubt. It keeps a second
// session that answers until the next dial of its key adopts it.
type controls struct {
	opener *opener

	mu   sync.Mutex
	kept map[messages.Key]*control
}

// control is a second session that is kept.
type control struct {
	conn  *conn
	first *conn
	ended func()      // to be called when it has ended, or is adopted
	timer *time.Timer // ends it if no dial adopts it
}

// end ends the second session.
func (k *control) end() {
	k.conn.discard()
	k.ended()
}

// leastWait is the least time that each of the two sessions has to answer while the server is away.
const leastWait = 500 * time.Millisecond

// compare opens a second session, and repeats there the checks that were refused on c. If the second session
// answers, with the same credentials, and c refuses once more, then c is dead, and the second session is kept.
// Otherwise the second session is ended. got are the answers on c. isAway is true if the server has not answered
// on c, or a front has. The error is that of the opening.
func (cs *controls) compare(ctx context.Context, c *conn, got answers, again []check, isAway bool, p permit) (verdict, *mcpbridge.Error) {
	ctx, cancel := context.WithTimeout(wire.WithoutRefresh(ctx), c.ConnectTimeout)
	defer cancel()
	defer func() { p.ended() }() // p is a free permit if the second session is kept
	var first answers
	hasID := c.hasID()
	if !hasID { // without ids, a server may give the place of the first session to the second
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
	case second.sessionID() == c.sessionID(): // the second session has replaced the first, so that the earlier refusals count
		first = got
	case isAway: // what answers like a front may be the server itself: do not persist
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

// persist runs checks, and repeats them if a front answers: behind it there may be several servers, one of which is away.
func (c *conn) persist(ctx context.Context, limit time.Duration, checks []check) (got answers) {
	for range persistence {
		got = c.runChecks(ctx, limit, untilAll, checks...)
		if !got.meetsFront() || !wire.Sleep(ctx, persistPause) {
			break
		}
	}
	return got
}

// compareUntil is compare for a dial, and returns when ctx ends. Then compare continues in the background, and ends
// its session.
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

// keep keeps a second session until it is adopted, at most for the connect timeout of the first.
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

// take removes and returns the control of a key, or returns nil. If first is not nil, the control must belong to it.
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

// adopt returns the session that is kept for the key of a dial, or nil if there is none that fits.
func (cs *controls) adopt(ctx context.Context, at *endpoint, req attempt) *conn {
	k := cs.take(req.Key, nil)
	if k == nil {
		return nil
	}
	c := k.conn
	if c.at != at || c.identity != identityOf(req.credentials) || req.Only || c.hasExpired() || ctx.Err() != nil {
		go k.end() // the dial does not wait for it
		return nil
	}
	k.ended()
	c.IsControl.Store(false)
	c.belongsTo(req.DialRequest)
	return c
}

// endFor ends the second session that is kept for a first one. It may be called again if it failed.
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
