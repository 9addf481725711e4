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

	"github.com/mcpactor/mcpactor/internal/leaktest"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

const (
	// scenarioTimeout bounds a scenario. endTimeout bounds the end of everything that it
	// has started.
	scenarioTimeout = 44 * time.Second
	endTimeout      = 40 * time.Second
	// pollInterval is the interval at which conditions are checked.
	pollInterval = 20 * time.Millisecond
)

// harness is a supervisor under test, with its servers.
type harness struct {
	t      *testing.T
	limit  time.Time
	dir    string // the working directory of the servers
	system *actor.ActorSystem
	sup    *supervisor.Supervisor

	scripts []string // the scripts of the servers
	remotes []*remote
	fronts  []*remote // proxies in front of servers
	sites   []*site
	ends    []func() // of clients

	goroutines goleak.Option // the goroutines before the test
	files      []string      // the open files before the test

	mu      sync.Mutex
	pending []*sentCommand
	events  []messages.Event
}

// newHarness returns a harness without a supervisor. At the end of the test everything in
// it is stopped, and the verifier runs.
func newHarness(t *testing.T) *harness {
	t.Helper()
	require.Empty(t, ownDescendants(), "there are processes of a test before")
	h := &harness{t: t, limit: time.Now().Add(scenarioTimeout), goroutines: goleak.IgnoreCurrent(), files: openFiles()}
	dir, err := os.MkdirTemp("", "real") // the path of T.TempDir is too long for the sockets of a browser
	require.NoError(t, err)
	h.dir = dir
	h.system = actor.NewActorSystem(func(config *actor.Config) {
		config.LoggerFactory = func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
	})
	h.system.EventStream.Subscribe(func(event any) {
		if e, ok := event.(messages.Event); ok {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.events = append(h.events, e)
		}
	})
	t.Cleanup(h.stopAndVerify)
	return h
}

// start starts the supervisor, with a large budget: a server takes some time to start
// again.
func (h *harness) start(cfg supervisor.Config, servers ...mcpbridge.Server) {
	h.t.Helper()
	cfg.Servers = servers
	cfg.Budget, cfg.BackoffMax = 1000, time.Second
	sup, err := supervisor.Start(h.system, cfg)
	require.NoError(h.t, err)
	h.sup = sup
}

// atEnd has a function called at the end of the test, before the verifier.
func (h *harness) atEnd(end func()) { h.ends = append(h.ends, end) }

// eventually waits until a condition holds.
func (h *harness) eventually(what string, holds func() bool) {
	h.t.Helper()
	require.Eventually(h.t, holds, max(2*pollInterval, time.Until(h.limit)), pollInterval, what)
}

// countEvents returns the number of events of a type.
func countEvents[E messages.Event](h *harness) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, event := range h.events {
		if _, ok := event.(E); ok {
			n++
		}
	}
	return n
}

// stopAndVerify stops the supervisor and then the servers, and reports what is left.
func (h *harness) stopAndVerify() {
	h.t.Helper()
	h.limit = time.Now().Add(endTimeout)
	for _, end := range h.ends {
		end()
	}
	errs := []error{h.stop()}
	var pids []int
	for _, r := range append(h.remotes, h.fronts...) {
		pids = append(pids, r.pid())
	}
	errs = append(errs, h.killLeftProcesses(pids...)) // also over HTTP, processes that were started for a session end with it
	for _, r := range append(h.remotes, h.fronts...) {
		r.stop()
	}
	for _, s := range h.sites {
		s.close()
	}
	errs = append(errs, h.killLeftProcesses(), h.missingReplies())
	reap()
	errs = append(errs, os.RemoveAll(h.dir), h.leftFiles(), goleak.Find(append(leaktest.Throttle, h.goroutines)...))
	if err := errors.Join(errs...); err != nil {
		h.t.Error(err)
	}
	if h.t.Failed() {
		h.t.Log(h.history())
	}
}

// history returns all events as text.
func (h *harness) history() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	b := strings.Builder{}
	b.WriteString("events:\n")
	for _, e := range h.events {
		fmt.Fprintf(&b, "%T %+v\n", e, reflect.Indirect(reflect.ValueOf(e)))
	}
	return b.String()
}

// stop stops the supervisor.
func (h *harness) stop() error {
	if h.sup == nil {
		return nil
	}
	ctx, cancel := context.WithDeadline(context.Background(), h.limit)
	defer cancel()
	return h.sup.Stop(ctx)
}

// killLeftProcesses waits until this process has no descendants other than but. At the
// limit it kills those that are left, and returns an error for them.
func (h *harness) killLeftProcesses(but ...int) error {
	var processes []process
	if h.waitFor(func() bool {
		processes = ownDescendants(but...)
		return len(processes) == 0 && len(ownDescendants(but...)) == 0 // one look may have missed a process
	}) {
		return nil
	}
	for _, p := range slices.Backward(processes) {
		syscall.Kill(p.pid, syscall.SIGKILL)
	}
	return fmt.Errorf("processes are left: %v", processes)
}

// leftFiles returns an error for the files that were not open before.
func (h *harness) leftFiles() error {
	var left []string
	if h.waitFor(func() bool {
		left = slices.DeleteFunc(openFiles(), func(file string) bool { return slices.Contains(h.files, file) })
		return len(left) == 0
	}) {
		return nil
	}
	return fmt.Errorf("files are open: %v", left)
}

// waitFor waits until a condition holds, and reports whether it did before the limit.
func (h *harness) waitFor(holds func() bool) bool {
	for ; !holds(); <-time.After(pollInterval) {
		if time.Now().After(h.limit) {
			return false
		}
	}
	return true
}

// missingReplies returns an error for each command that did not get exactly one reply.
func (h *harness) missingReplies() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	var errs []error
	for _, p := range h.pending {
		if n := len(p.replies); n != 1 {
			errs = append(errs, fmt.Errorf("%d replies to %T %v", n, p.cmd, p.cmd))
		}
	}
	return errors.Join(errs...)
}
