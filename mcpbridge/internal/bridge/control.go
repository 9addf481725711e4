package bridge

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/doubt"
	"github.com/mcpactor/mcpactor/messages"
)

// controls opens controls: second sessions, whose answers are compared with those of sessions in doubt. It keeps a control
// that answers until the next dial of its key adopts it.
type controls struct {
	opener *opener

	mu   sync.Mutex
	kept map[messages.Key]*controlSession
}

// controlSession is the [control] of the session first.
type controlSession struct {
	all   *controls
	conn  *conn
	first *conn
	ended func()      // to be called when it has ended, or is adopted
	timer *time.Timer // ends it if no dial adopts it; nil until it is kept
}

// end ends the control.
func (k *controlSession) end() {
	k.conn.discard() //nolint:errcheck // nobody waits for it
	k.ended()
}

// send sends a check on the control.
func (k *controlSession) send(ctx context.Context, do doubt.Do, which doubt.Check) *doubt.Answer {
	return k.conn.send(ctx, do, which)
}

// isSame reports whether the control has the id of the first session.
func (k *controlSession) isSame() bool { return k.conn.sessionID() == k.first.sessionID() }

// keep keeps the control for the next dial.
func (k *controlSession) keep() { k.all.keep(k) }

// open opens a control for a session.
func (cs *controls) open(ctx context.Context, first *conn, p permit) (control, *mcpbridge.Error) {
	second, e := cs.opener.open(ctx, first.at, attempt{
		Request: dial.Request{
			Key: first.key, Roots: first.callbacks.roots.Load(), Capabilities: first.client.capabilities, Introduction: first.introduction,
		},
		credentials: first.Credentials, control: true,
	})
	if e != nil {
		if left := dial.LeftBy(e); left != nil {
			cs.keep(&controlSession{all: cs, conn: left.(*conn), first: first, ended: freePermit.ended}) // to be closed with the first
		}
		return nil, e
	}
	return &controlSession{all: cs, conn: second, first: first, ended: p.ended}, nil
}

// keep keeps a control until it is adopted, at most for the connect timeout of the first session.
func (cs *controls) keep(k *controlSession) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	key := k.conn.key
	if before := cs.kept[key]; before != nil && before.timer.Stop() {
		go before.end()
	}
	if cs.kept == nil {
		cs.kept = map[messages.Key]*controlSession{}
	}
	k.timer = time.AfterFunc(k.first.ConnectTimeout, func() {
		cs.mu.Lock()
		if cs.kept[key] == k {
			delete(cs.kept, key)
		}
		cs.mu.Unlock()
		k.end()
	})
	cs.kept[key] = k
}

// take removes and returns the control of a key, or returns nil. If first is not nil, the control must belong to it.
func (cs *controls) take(key messages.Key, first *conn) *controlSession {
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
	fits := c.at == at && c.Identity == identityOf(req.credentials) && c.info.Declared == cs.opener.clientFor(at, req.Capabilities).declaredWith(req.Introduction)
	if !fits || !c.IsOpen.Load() || req.Only || c.hasExpired() || ctx.Err() != nil {
		go k.end() // the dial does not wait for it
		return nil
	}
	k.ended()
	c.IsControl.Store(false)
	c.callbacks.owner.set(req.Request)
	return c
}

// endFor ends the control that is kept for a session. It may be called again if it failed.
func (cs *controls) endFor(ctx context.Context, first *conn) error {
	k := cs.take(first.key, first)
	if k == nil {
		return nil
	}
	if err := k.conn.Close(ctx); err != nil {
		cs.keep(k)
		return fmt.Errorf("the second session, which was opened to settle doubt: %w", err)
	}
	k.ended()
	return nil
}

// end ends the controls that are kept.
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
