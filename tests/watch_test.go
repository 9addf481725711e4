package tests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// quiet keeps Proto.Actor's log out of the tests.
var quiet = func(config *actor.Config) {
	config.LoggerFactory = func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
}

// watch is a dialer that records what is open.
type watch struct {
	mcpbridge.Dialer

	mu       sync.Mutex
	open     map[messages.Key]int
	dials    int
	failures int
	most     int // open at once, all keys together
	total    int
	wrong    []error
	unclosed map[messages.Key]bool // a close of theirs has failed: the server may know them still
}

func newWatch() *watch {
	return &watch{open: map[messages.Key]int{}, unclosed: map[messages.Key]bool{}}
}

// Dial counts a transport as open from before it is dialed.
func (w *watch) Dial(ctx context.Context, req mcpbridge.DialRequest) (mcpbridge.Conn, error) {
	w.change(req.Key, +1)
	conn, err := w.Dialer.Dial(ctx, req)
	if err != nil {
		w.change(req.Key, -1)
		w.mu.Lock()
		w.failures++
		w.mu.Unlock()
		return nil, err
	}
	return &watchedConn{Conn: conn, watch: w, key: req.Key}, nil
}

func (w *watch) change(key messages.Key, by int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if by > 0 {
		w.dials++
	}
	w.open[key] += by
	w.total += by
	w.most = max(w.most, w.total)
	if n := w.open[key]; n > 1 {
		w.wrong = append(w.wrong, fmt.Errorf("%v had %d transports at once", key, n))
	}
}

// dialed returns how many dials there were.
func (w *watch) dialed() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dials
}

// mostOpen returns how many were open at once.
func (w *watch) mostOpen() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}

// wronged returns what was wrong so far.
func (w *watch) wronged() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return errors.Join(w.wrong...)
}

// failedToClose reports whether closing a session of a scope has ever failed.
func (w *watch) failedToClose(scope string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key := range w.unclosed {
		if key.Scope == scope {
			return true
		}
	}
	return false
}

// verify returns what was wrong, and what is left open.
func (w *watch) verify() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	wrong := slices.Clone(w.wrong)
	for key, n := range w.open {
		if n != 0 {
			wrong = append(wrong, fmt.Errorf("%v: %d transports were left open", key, n))
		}
	}
	return errors.Join(wrong...)
}

// watchedConn counts as closed when its transport is: a close that failed has
// failed on the server.
type watchedConn struct {
	mcpbridge.Conn
	watch *watch
	key   messages.Key
	once  sync.Once
}

func (c *watchedConn) Close(ctx context.Context) error {
	defer c.closed()
	err := c.Conn.Close(ctx)
	if err != nil {
		c.watch.mu.Lock()
		defer c.watch.mu.Unlock()
		c.watch.unclosed[c.key] = true
	}
	return err
}

func (c *watchedConn) Detach(ctx context.Context) error {
	defer c.closed()
	return c.Conn.Detach(ctx)
}

func (c *watchedConn) closed() {
	c.once.Do(func() { c.watch.change(c.key, -1) })
}
