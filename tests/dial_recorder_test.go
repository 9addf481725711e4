package tests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/messages"
)

// quietLog discards the log of Proto.Actor.
var quietLog = func(config *actor.Config) {
	config.LoggerFactory = func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
}

// dialRecorder is a dialer that records which transports are open.
type dialRecorder struct {
	dial.Dialer

	mu        sync.Mutex
	open      map[messages.Key]int
	dials     int
	failures  int
	most      int // the most transports that were open at once, over all keys
	total     int
	groups    map[string]*groupCount // by server and by tenant, which is the scope up to the first "/"
	errs      []error
	notClosed map[messages.Key]bool // keys with a failed close: the server may still have their sessions
}

// groupCount counts the transports of a server or of a tenant.
type groupCount struct{ open, most int }

func newDialRecorder() *dialRecorder {
	return &dialRecorder{open: map[messages.Key]int{}, notClosed: map[messages.Key]bool{}, groups: map[string]*groupCount{}}
}

// Dial counts a transport as open from the beginning of its dial.
func (r *dialRecorder) Dial(ctx context.Context, req dial.Request) (dial.Conn, error) {
	r.change(req.Key, +1)
	conn, err := r.Dialer.Dial(ctx, req)
	if err != nil {
		r.change(req.Key, -1)
		r.mu.Lock()
		r.failures++
		r.mu.Unlock()
		return nil, err
	}
	return &recordedConn{Conn: conn, recorder: r, key: req.Key}, nil
}

func (r *dialRecorder) change(key messages.Key, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if by > 0 {
		r.dials++
	}
	r.open[key] += by
	r.total += by
	r.most = max(r.most, r.total)
	tenant, _, _ := strings.Cut(key.Scope, "/")
	for _, name := range []string{"server " + key.Server, "tenant " + tenant} {
		g := r.groups[name]
		if g == nil {
			g = &groupCount{}
			r.groups[name] = g
		}
		g.open += by
		g.most = max(g.most, g.open)
	}
	if n := r.open[key]; n > 1 {
		r.errs = append(r.errs, fmt.Errorf("%v had %d transports at once", key, n))
	}
}

// dialed returns the number of dials.
func (r *dialRecorder) dialed() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dials
}

// mostOpenOf returns the largest number of transports that a server or a tenant had open at
// once: its name is "server s" or "tenant t".
func (r *dialRecorder) mostOpenOf(group string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.groups[group] == nil {
		return 0
	}
	return r.groups[group].most
}

// mostOpen returns the largest number of transports that were open at once.
func (r *dialRecorder) mostOpen() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.most
}

// violations returns an error for each key that had two transports at once.
func (r *dialRecorder) violations() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return errors.Join(r.errs...)
}

// failedToClose reports whether the close of a session of the scope has ever failed.
func (r *dialRecorder) failedToClose(scope string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key := range r.notClosed {
		if key.Scope == scope {
			return true
		}
	}
	return false
}

// check returns the violations, and an error for each transport that is still open.
func (r *dialRecorder) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	wrong := slices.Clone(r.errs)
	for key, n := range r.open {
		if n != 0 {
			wrong = append(wrong, fmt.Errorf("%v: %d transports were left open", key, n))
		}
	}
	return errors.Join(wrong...)
}

// recordedConn records that its transport is closed. That holds also if Close fails: only
// the server has not ended the session.
type recordedConn struct {
	dial.Conn
	recorder *dialRecorder
	key      messages.Key
	once     sync.Once
}

func (c *recordedConn) Close(ctx context.Context) error {
	defer c.closed()
	err := c.Conn.Close(ctx)
	if err != nil {
		c.recorder.mu.Lock()
		defer c.recorder.mu.Unlock()
		c.recorder.notClosed[c.key] = true
	}
	return err
}

func (c *recordedConn) Detach(ctx context.Context) error {
	defer c.closed()
	return c.Conn.Detach(ctx)
}

func (c *recordedConn) closed() {
	c.once.Do(func() { c.recorder.change(c.key, -1) })
}
