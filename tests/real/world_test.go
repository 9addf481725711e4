//go:build real

package real

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

const (
	// patience is how long a scenario may take, and leaving how long all that
	// it has may take to end after that.
	patience = 44 * time.Second
	leaving  = 14 * time.Second
	// tick is how often it is looked whether something has come true.
	tick = 20 * time.Millisecond
)

// world is a supervisor under test, with the servers that it talks to.
type world struct {
	t      *testing.T
	limit  time.Time
	dir    string // for whatever the servers write
	system *actor.ActorSystem
	sup    *supervisor.Supervisor

	scripts []string // of the servers
	remotes []*remote
	sites   []*site

	goroutines goleak.Option // that there were before
	files      int           // as above

	mu      sync.Mutex
	pending []*pending
	events  []messages.Event
}

// newWorld returns a world without a supervisor. What it has at the end of the
// test is ended, and looked at.
func newWorld(t *testing.T) *world {
	t.Helper()
	require.Empty(t, ours(), "there are processes of a test before")
	w := &world{t: t, limit: time.Now().Add(patience), goroutines: goleak.IgnoreCurrent(), files: openFiles()}
	dir, err := os.MkdirTemp("", "real") // testing's is too long for the sockets of a browser
	require.NoError(t, err)
	w.dir = dir
	w.system = actor.NewActorSystem(func(config *actor.Config) {
		config.LoggerFactory = func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
	})
	w.system.EventStream.Subscribe(func(event any) {
		if e, ok := event.(messages.Event); ok {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.events = append(w.events, e)
		}
	})
	t.Cleanup(w.end)
	return w
}

// start starts the supervisor. It does not give up soon: a server that is
// started again takes its time.
func (w *world) start(cfg supervisor.Config, servers ...mcpbridge.Server) {
	w.t.Helper()
	cfg.Servers = servers
	cfg.Budget, cfg.BackoffMax = 1000, time.Second
	sup, err := supervisor.Start(w.system, cfg)
	require.NoError(w.t, err)
	w.sup = sup
}

// until waits until something has come true.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	require.Eventually(w.t, holds, max(2*tick, time.Until(w.limit)), tick, what)
}

// count returns how many events of a type there were.
func count[E messages.Event](w *world) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, event := range w.events {
		if _, ok := event.(E); ok {
			n++
		}
	}
	return n
}

// end stops the supervisor, then the servers that are our own, and looks at what
// is left.
func (w *world) end() {
	w.t.Helper()
	w.limit = time.Now().Add(leaving)
	errs := []error{w.stop()}
	var pids []int
	for _, r := range w.remotes {
		pids = append(pids, r.pid())
	}
	errs = append(errs, w.left(pids...)) // over HTTP too, what a session has started ends with it
	for _, r := range w.remotes {
		r.end()
	}
	for _, s := range w.sites {
		s.close()
	}
	errs = append(errs, w.left(), w.answers())
	reap()
	errs = append(errs, os.RemoveAll(w.dir), w.leftOpen(), goleak.Find(w.goroutines, throttle))
	if err := errors.Join(errs...); err != nil {
		w.t.Error(err)
	}
	if w.t.Failed() {
		w.t.Log(w.history())
	}
}

// history tells what happened to the sessions.
func (w *world) history() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := strings.Builder{}
	b.WriteString("events:\n")
	for _, e := range w.events {
		fmt.Fprintf(&b, "%T %+v\n", e, reflect.Indirect(reflect.ValueOf(e)))
	}
	return b.String()
}

// stop stops the supervisor.
func (w *world) stop() error {
	if w.sup == nil {
		return nil
	}
	ctx, cancel := context.WithDeadline(context.Background(), w.limit)
	defer cancel()
	return w.sup.Stop(ctx)
}

// left tells of the processes below this one, but for some. They have until the
// limit to go, and then are killed.
func (w *world) left(but ...int) error {
	var processes []process
	if w.soon(func() bool {
		processes = ours(but...)
		return len(processes) == 0 && len(ours(but...)) == 0 // one look may have missed one
	}) {
		return nil
	}
	for _, p := range slices.Backward(processes) {
		syscall.Kill(p.pid, syscall.SIGKILL)
	}
	return fmt.Errorf("processes are left: %v", processes)
}

// leftOpen tells of files that were not open before.
func (w *world) leftOpen() error {
	if w.soon(func() bool { return openFiles() <= w.files }) {
		return nil
	}
	return fmt.Errorf("%d files are open, and %d were before", openFiles(), w.files)
}

// soon waits until something has come true, and reports whether it has.
func (w *world) soon(holds func() bool) bool {
	for ; !holds(); <-time.After(tick) {
		if time.Now().After(w.limit) {
			return false
		}
	}
	return true
}

// answers tells of commands that did not get exactly one reply.
func (w *world) answers() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var errs []error
	for _, p := range w.pending {
		if n := len(p.replies); n != 1 {
			errs = append(errs, fmt.Errorf("%d replies to %T %v", n, p.cmd, p.cmd))
		}
	}
	return errors.Join(errs...)
}
