package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/messages"
)

// verifier records calls, replies, runs of tools and connections, and checks at the end that
// the guarantees hold.
type verifier struct {
	mu         sync.Mutex
	sentCalls  int
	calls      map[string]*call     // those of the last minute, by id
	open       map[messages.Key]int // open connections
	sessions   int                  // the sum of open
	maxOpen    int                  // the maximum of sessions
	violations []string             // found during the show

	unanswered, repeated []string // violations of older calls

	answered, replayed, lost int
	again                    int // calls that ran more than once, known after check
	failures                 map[messages.Code]int
	slowest                  time.Duration
}

// call is a call of a tool.
type call struct {
	safe    bool // may run twice
	sent    time.Time
	replied time.Time // the last reply
	replies int
	runs    int
	ok      bool
}

func newVerifier() *verifier {
	return &verifier{calls: map[string]*call{}, open: map[messages.Key]int{}, failures: map[messages.Code]int{}}
}

// sent records a call.
func (v *verifier) sent(id string, safe bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sentCalls++
	v.calls[id] = &call{safe: safe, sent: time.Now()}
}

// executed records that a server runs a call.
func (v *verifier) executed(id string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if c := v.calls[id]; c != nil {
		c.runs++
	}
}

// replied records the reply to a call.
func (v *verifier) replied(reply messages.Reply) {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.calls[reply.RequestID()]
	if c == nil {
		v.violations = append(v.violations, "a reply to an unknown call")
		return
	}
	c.replies++
	c.replied = time.Now()
	v.answered++
	v.slowest = max(v.slowest, c.replied.Sub(c.sent))
	switch r := reply.(type) {
	case messages.Result:
		c.ok = true
		if r.GetReceipt().Replayed {
			v.replayed++
		}
	case *messages.Failure:
		v.failures[r.Code]++
		if r.Code == messages.CodeLost {
			v.lost++
		}
	}
}

// keptFor is how long a call is remembered after its reply.
const keptFor = time.Minute

// forget checks the calls that were answered some time ago, and forgets them. A later reply to
// one of them is a reply to an unknown call.
func (v *verifier) forget() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, c := range v.calls {
		if c.replies > 0 && time.Since(c.replied) > keptFor {
			v.checkCall(id, c)
			delete(v.calls, id)
		}
	}
}

// checkCall records the violations of a call. The caller holds mu.
func (v *verifier) checkCall(id string, c *call) {
	if c.replies != 1 {
		v.unanswered = append(v.unanswered, fmt.Sprintf("call %s got %d replies", id, c.replies))
	}
	maxRuns := 1
	if c.safe {
		maxRuns = 2
	}
	if c.runs > 1 {
		v.again++
	}
	if c.runs > maxRuns || c.ok && c.runs == 0 {
		v.repeated = append(v.repeated, fmt.Sprintf("call %s ran %d times", id, c.runs))
	}
}

// check returns the violations of each claim. It is called once, at the end.
func (v *verifier) check(maxSessions int) (unanswered, repeated, connections, aboveCap []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for id, c := range v.calls {
		v.checkCall(id, c)
	}
	unanswered, repeated = v.unanswered, v.repeated
	connections = slices.Clone(v.violations)
	for key, n := range v.open {
		if n != 0 {
			connections = append(connections, fmt.Sprintf("%v: %d connections were left open", key, n))
		}
	}
	if v.maxOpen > maxSessions {
		aboveCap = append(aboveCap, fmt.Sprintf("%d sessions were open at once", v.maxOpen))
	}
	return unanswered, repeated, connections, aboveCap
}

// watch wraps a dialer to record its connections.
func (v *verifier) watch(d dial.Dialer) dial.Dialer { return &watchedDialer{d, v} }

type watchedDialer struct {
	dial.Dialer
	verifier *verifier
}

// Dial records a connection before it is dialed.
func (w *watchedDialer) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	w.verifier.opened(req.Key, 1)
	conn, err := w.Dialer.Dial(ctx, req)
	if err != nil {
		w.verifier.opened(req.Key, -1)
		return nil, err
	}
	return &watchedConn{Conn: conn, verifier: w.verifier, key: req.Key}, nil
}

type watchedConn struct {
	dial.Conn
	verifier *verifier
	key      messages.Key
	once     sync.Once
}

// Close records the end of a connection, even if closing fails: the show looks for leftover
// sessions and processes on the servers.
func (c *watchedConn) Close(ctx context.Context) error {
	defer c.ended()
	return c.Conn.Close(ctx)
}

// Detach records the end of a connection.
func (c *watchedConn) Detach(ctx context.Context) error {
	defer c.ended()
	return c.Conn.Detach(ctx)
}

func (c *watchedConn) ended() {
	c.once.Do(func() { c.verifier.opened(c.key, -1) })
}

// opened adds to the number of open connections of a key.
func (v *verifier) opened(key messages.Key, by int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.open[key] += by
	v.sessions += by
	v.maxOpen = max(v.maxOpen, v.sessions)
	if v.open[key] > 1 {
		v.violations = append(v.violations, fmt.Sprintf("%v had two connections at once", key))
	}
}
