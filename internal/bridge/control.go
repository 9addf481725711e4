package bridge

import (
	"context"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/internal/bridge/wire"
	"github.com/mcpactor/mcpactor/mcpbridge"
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
	timer *time.Timer // ends it when nobody adopts it
}

// compare opens a second session and asks it what c has refused. If the second session
// answers, with the same credentials, and c refuses once more, then c is
// dead, and the second session is kept to be adopted. Otherwise the refusal is
// not about the session, and the second session is ended.
func (cs *controls) compare(ctx context.Context, c *conn, asked reply) verdict {
	ctx, cancel := context.WithTimeout(ctx, c.ConnectTimeout)
	defer cancel()
	second, e := cs.opener.open(ctx, c.at, attempt{
		DialRequest: mcpbridge.DialRequest{Key: c.key, Roots: c.roots.Load()},
		credentials: c.Credentials, control: true,
	})
	switch {
	case e == nil:
	case e.Status < 400 && e.Code == 0, e.Status >= 500, e.Status == http.StatusTooManyRequests, e.Status == http.StatusRequestTimeout:
		return verdictUnsettled // a server that cannot be asked has not refused
	default:
		return verdictAlive
	}
	result := verdictUnsettled
	answer := second.question(ctx)
	switch again := c.question(ctx); {
	case again.refusal == nil:
		result = verdictAlive
	case wire.Alike(answer.refusal, asked.refusal):
		result = verdictAlive
	case answer.refusal == nil && (wire.Alike(again.refusal, asked.refusal) || again.refusal.Session == mcpbridge.Gone) && reflect.DeepEqual(answer.credentials, asked.credentials):
		cs.keep(second, c.ConnectTimeout)
		return verdictDead
	}
	second.discard()
	return result
}

// compareUntil is compare for a dial, which waits no longer than ctx lasts. What is left
// then is cleaned up in the background.
func (cs *controls) compareUntil(ctx context.Context, c *conn, asked reply) verdict {
	found := make(chan verdict, 1)
	go func() { found <- cs.compare(wire.WithoutRefresh(ctx), c, asked) }()
	select {
	case v := <-found:
		return v
	case <-ctx.Done():
		return verdictUnsettled
	}
}

// keep keeps a session until it is adopted, or for a limited time.
func (cs *controls) keep(c *conn, limit time.Duration) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if before := cs.kept[c.key]; before != nil && before.timer.Stop() {
		go before.conn.discard()
	}
	if cs.kept == nil {
		cs.kept = map[messages.Key]*control{}
	}
	cs.kept[c.key] = &control{c, time.AfterFunc(limit, func() {
		cs.mu.Lock()
		if kept := cs.kept[c.key]; kept != nil && kept.conn == c {
			delete(cs.kept, c.key)
		}
		cs.mu.Unlock()
		c.discard()
	})}
}

// take returns the session that is kept for a key, or nil.
func (cs *controls) take(key messages.Key) *conn {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	kept := cs.kept[key]
	delete(cs.kept, key)
	if kept == nil || !kept.timer.Stop() {
		return nil
	}
	return kept.conn
}

// adopt gives whoever dials the session that is kept for the key, or nil.
func (cs *controls) adopt(ctx context.Context, at *endpoint, req attempt) *conn {
	c := cs.take(req.Key)
	switch {
	case c == nil:
		return nil
	case c.at != at || c.identity != identityOf(req.credentials) || req.Only || c.hasExpired() || ctx.Err() != nil:
		go c.discard() // whoever dials has no time for it
		return nil
	}
	c.IsControl.Store(false)
	c.belongsTo(req.DialRequest)
	return c
}

// end ends the sessions that are kept.
func (cs *controls) end() {
	cs.mu.Lock()
	all := cs.kept
	cs.kept = nil
	cs.mu.Unlock()
	for _, kept := range all {
		if kept.timer.Stop() {
			kept.conn.discard()
		}
	}
}
