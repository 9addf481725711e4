package tests

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
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
}

func newWatch() *watch { return &watch{open: map[messages.Key]int{}} }

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

func (w *watch) verify() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	wrong := w.wrong
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
	return c.Conn.Close(ctx)
}

func (c *watchedConn) Detach(ctx context.Context) error {
	defer c.closed()
	return c.Conn.Detach(ctx)
}

func (c *watchedConn) closed() {
	c.once.Do(func() { c.watch.change(c.key, -1) })
}
