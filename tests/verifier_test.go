package tests

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/leaktest"
	"github.com/mcpactor/mcpactor/messages"
)

// verify is the verifier that ends every scenario: there must be no violation.
func (h *harness) verify() {
	h.t.Helper()
	require.NoError(h.t, h.violations())
	if h.log != nil && h.stopped {
		h.mu.Lock()
		defer h.mu.Unlock()
		if err := h.log.violations(h.events); err != nil {
			h.t.Error(err)
		}
	}
}

// violations returns an error for each condition that does not hold at the end of a
// scenario: each command got exactly one reply, no key ever had two transports, each dialed
// connection was closed, no call ran twice without permission, the replies are true about
// what has run, and there was no stray message.
func (h *harness) violations() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	errs := []error{h.dials.check()}
	replayed, twice := map[string]bool{}, map[string]bool{} // replayed: as the reply says; twice: the call may run twice
	ran, rest := map[string]bool{}, map[string]bool{}       // according to the replies, the call certainly ran (ran), or certainly did not (rest)
	for _, p := range h.pending {
		if op, ok := p.cmd.(*messages.CallTool); ok && op.Params != nil {
			twice[op.ID] = op.Replay == messages.ReplayAlways || op.Replay == messages.ReplaySafe && strings.HasSuffix(op.Params.Name, "/ro")
		}
		if n := len(p.replies); n != 1 {
			errs = append(errs, fmt.Errorf("%d replies to %T %s", n, p.cmd, p.cmd.RequestID()))
			continue
		}
		r := <-p.replies
		switch r := r.(type) {
		case *messages.ToolResult:
			replayed[r.ID], ran[r.ID] = r.Replayed, r.Result != nil && !r.Result.IsError
		case *messages.Failure:
			replayed[r.ID], rest[r.ID] = r.Replayed, !r.MayHaveRun
		}
	}
	if h.executed != nil {
		executed := h.executed()
		for id, certain := range ran {
			if certain && executed[id] == 0 {
				errs = append(errs, fmt.Errorf("call %s has a result, and never ran", id))
			}
		}
		for id, n := range executed {
			if rest[id] {
				errs = append(errs, fmt.Errorf("call %s is said not to have run, and ran", id))
			}
			if n > 2 || n == 2 && (!replayed[id] || !twice[id]) {
				errs = append(errs, fmt.Errorf("call %s ran %d times, replayed: %v, may run twice: %v", id, n, replayed[id], twice[id]))
			}
		}
	}
	if h.overlaps != nil {
		for _, scope := range h.overlaps() {
			if !h.dials.failedToClose(scope) {
				errs = append(errs, fmt.Errorf("at the server: scope %q had two sessions at once", scope))
			}
		}
	}
	if h.strict {
		errs = append(errs, h.strayMessages()...)
	}
	return errors.Join(errs...)
}

// ofActors matches the packages whose messages our actors send.
var ofActors = regexp.MustCompile(`^github\.com/mcpactor/mcpactor/(actors/|internal/protocol$|messages$)`)

// strayMessages returns an error for each dead letter of mcpactor, and for each supervision
// event that is not a fault.
func (h *harness) strayMessages() (errs []error) {
	for _, e := range h.faults {
		if _, ok := e.Reason.(*actors.Fault); !ok {
			errs = append(errs, fmt.Errorf("supervision event that is no fault: %v", e.Reason))
		}
	}
	for _, e := range h.deadLetters {
		if _, late := e.Message.(actor.IgnoreDeadLetterLogging); late {
			continue // a report about a connection that was replaced
		}
		if kind := reflect.TypeOf(e.Message); kind.Kind() == reflect.Pointer && ofActors.MatchString(kind.Elem().PkgPath()) {
			errs = append(errs, fmt.Errorf("dead letter %s", kind))
		}
	}
	return errs
}

// idleWorker ignores a goroutine that waits for an actor to run. It ends soon, and TestMain
// finds one that does not.
var idleWorker = goleak.IgnoreTopFunction("github.com/mcpactor/mcpactor/internal/dispatch.(*Dispatcher).serve")

// resources are the goroutines, files and processes that exist before a scenario.
type resources struct {
	goroutines goleak.Option
	files      []string
	processes  []string
}

func resourcesInUse() resources {
	return resources{goleak.IgnoreCurrent(), openFiles(), children()}
}

// leaks returns an error for the goroutines, open files and processes that a scenario has
// left. Files and processes may take some time to end.
func (s resources) leaks(patience time.Duration) error {
	var files, processes []string
	for began := time.Now(); ; <-time.After(10 * time.Millisecond) {
		files, processes = difference(openFiles(), s.files), difference(children(), s.processes)
		if len(files) == 0 && len(processes) == 0 || time.Since(began) > patience {
			break
		}
	}
	errs := []error{goleak.Find(append(leaktest.Throttle, s.goroutines, idleWorker)...)}
	if len(files) > 0 {
		errs = append(errs, fmt.Errorf("files are open: %v", files))
	}
	if len(processes) > 0 {
		errs = append(errs, fmt.Errorf("processes %v are left", processes))
	}
	return errors.Join(errs...)
}

func (s resources) verify(t *testing.T) {
	t.Helper()
	require.NoError(t, s.leaks(2*time.Second))
}

// difference returns the elements of all that are not in known.
func difference(all, known []string) []string {
	return slices.DeleteFunc(all, func(one string) bool { return slices.Contains(known, one) })
}

// openFiles returns the open files and sockets of this process, each with its number. A
// count is not enough, because files that were open before may be closed meanwhile. The
// files of the runtime's poller are left out: it opens them with the first socket.
func openFiles() (all []string) {
	files, _ := os.ReadDir("/proc/self/fd")
	for _, f := range files {
		if at, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && !strings.HasPrefix(at, "anon_inode:") {
			all = append(all, f.Name()+" "+at)
		}
	}
	return all
}

// children returns the ids of the child processes of this process.
func children() (pids []string) {
	threads, _ := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		text, _ := os.ReadFile("/proc/self/task/" + thread.Name() + "/children")
		pids = append(pids, strings.Fields(string(text))...)
	}
	return pids
}
