package bridge

import (
	"context"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// second is a session that a control has opened, and that answers what the first one of
// its key refuses. The next dial of the key adopts it, so that the key has no third.
type second struct {
	conn  *conn
	timer *time.Timer // ends it when nobody adopts it
}

// keep keeps a session until it is adopted, or for a limited time.
func (b *Bridge) keep(c *conn, limit time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if before := b.seconds[c.key]; before != nil && before.timer.Stop() {
		go before.conn.discard()
	}
	if b.seconds == nil {
		b.seconds = map[messages.Key]*second{}
	}
	b.seconds[c.key] = &second{c, time.AfterFunc(limit, func() {
		b.mu.Lock()
		if kept := b.seconds[c.key]; kept != nil && kept.conn == c {
			delete(b.seconds, c.key)
		}
		b.mu.Unlock()
		c.discard()
	})}
}

// take returns the session that is kept for a key, or nil.
func (b *Bridge) take(key messages.Key) *conn {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := b.seconds[key]
	delete(b.seconds, key)
	if kept == nil || !kept.timer.Stop() {
		return nil
	}
	return kept.conn
}

// adopt gives who dials the session that is kept for its key, or nil.
func (b *Bridge) adopt(ctx context.Context, at *endpoint, req attempt) *conn {
	c := b.take(req.Key)
	switch {
	case c == nil:
		return nil
	case c.at != at || c.x.out.identity != identityOf(req.credentials) || req.Only || c.x.hasExpired() || ctx.Err() != nil:
		go c.discard() // whoever dials has no time for it
		return nil
	}
	c.second.Store(false)
	c.belongsTo(req.DialRequest)
	return c
}

// endSeconds ends the sessions that are kept.
func (b *Bridge) endSeconds() {
	b.mu.Lock()
	seconds := b.seconds
	b.seconds = nil
	b.mu.Unlock()
	for _, kept := range seconds {
		if kept.timer.Stop() {
			kept.conn.discard()
		}
	}
}
