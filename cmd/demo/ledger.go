package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// ledger records what was asked, answered, run and opened, and says at the end
// whether the books balance.
type ledger struct {
	mu       sync.Mutex
	calls    map[string]*entry
	open     map[messages.Key]int
	sessions int      // open at this moment
	most     int      // open at once
	wrong    []string // what was seen to be wrong on the way

	answered, replayed, lost int
	failures                 map[messages.Code]int
	slowest                  time.Duration
}

// entry is one call.
type entry struct {
	safe    bool // it may run twice
	sent    time.Time
	replies int
	runs    int
	ok      bool
}

func newLedger() *ledger {
	return &ledger{calls: map[string]*entry{}, open: map[messages.Key]int{}, failures: map[messages.Code]int{}}
}

// sent notes a call.
func (l *ledger) sent(id string, safe bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.calls[id] = &entry{safe: safe, sent: time.Now()}
}

// executed notes that a server runs a call.
func (l *ledger) executed(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.calls[id]; e != nil {
		e.runs++
	}
}

// replied notes the reply to a call.
func (l *ledger) replied(reply messages.Reply) {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.calls[reply.RequestID()]
	if e == nil {
		l.wrong = append(l.wrong, "a reply to a call that nobody made")
		return
	}
	e.replies++
	l.answered++
	l.slowest = max(l.slowest, time.Since(e.sent))
	switch r := reply.(type) {
	case messages.Result:
		e.ok = true
		if r.GetReceipt().Replayed {
			l.replayed++
		}
	case *messages.Failure:
		l.failures[r.Code]++
		if r.MayHaveRun {
			l.lost++
		}
	}
}

// check returns what is wrong with each claim: nothing, if it holds.
func (l *ledger) check(sessionCap int) (unanswered, twice, two, above []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, e := range l.calls {
		if e.replies != 1 {
			unanswered = append(unanswered, fmt.Sprintf("call %s got %d replies", id, e.replies))
		}
		if most := map[bool]int{false: 1, true: 2}[e.safe]; e.runs > most || e.ok && e.runs == 0 {
			twice = append(twice, fmt.Sprintf("call %s ran %d times", id, e.runs))
		}
	}
	two = slices.Clone(l.wrong)
	for key, n := range l.open {
		if n != 0 {
			two = append(two, fmt.Sprintf("%v: %d connections were left open", key, n))
		}
	}
	if l.most > sessionCap {
		above = append(above, fmt.Sprintf("%d sessions were open at once", l.most))
	}
	return unanswered, twice, two, above
}

// watch wraps a dialer, so that every connection is in the books.
func (l *ledger) watch(d mcpbridge.Dialer) mcpbridge.Dialer { return &watched{d, l} }

type watched struct {
	mcpbridge.Dialer
	ledger *ledger
}

// Dial notes a connection, from before it is dialed.
func (w *watched) Dial(ctx context.Context, req mcpbridge.DialRequest) (mcpbridge.Conn, error) {
	w.ledger.opened(req.Key, 1)
	conn, err := w.Dialer.Dial(ctx, req)
	if err != nil {
		w.ledger.opened(req.Key, -1)
		return nil, err
	}
	return &watchedConn{Conn: conn, ledger: w.ledger, key: req.Key}, nil
}

type watchedConn struct {
	mcpbridge.Conn
	ledger *ledger
	key    messages.Key
	once   sync.Once
}

// Close notes the end of a connection. What a failure leaves, a session on the
// server or a process, is looked for there.
func (c *watchedConn) Close(ctx context.Context) error {
	defer c.ended()
	return c.Conn.Close(ctx)
}

// Detach notes the end of a connection.
func (c *watchedConn) Detach(ctx context.Context) error {
	defer c.ended()
	return c.Conn.Detach(ctx)
}

func (c *watchedConn) ended() {
	c.once.Do(func() { c.ledger.opened(c.key, -1) })
}

func (l *ledger) opened(key messages.Key, by int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open[key] += by
	l.sessions += by
	l.most = max(l.most, l.sessions)
	if l.open[key] > 1 {
		l.wrong = append(l.wrong, fmt.Sprintf("%v had two connections at once", key))
	}
}
