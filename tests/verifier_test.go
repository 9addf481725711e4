package tests

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/messages"
)

// verify is the end of every scenario: nothing of [world.wrong] may be there.
func (h *harness) verify() {
	h.t.Helper()
	require.NoError(h.t, h.violations())
}

// violations tells what does not hold of what must hold at the end of every scenario:
// each command got exactly one reply, no key ever had two transports, what was
// dialed was closed, nothing ran twice that must not, nothing was lost on the
// way, and nothing failed by mistake.
func (h *harness) violations() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	errs := []error{h.dials.check()}
	replayed, twice := map[string]bool{}, map[string]bool{} // the latter may run twice, if they are replayed
	ran, rest := map[string]bool{}, map[string]bool{}       // as their replies say: certainly; certainly not
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

// strayMessages tells of messages of ours that nobody got, and of failures of ours that
// are no faults.
func (h *harness) strayMessages() (errs []error) {
	for _, e := range h.faults {
		if _, ok := e.Reason.(*actors.Fault); !ok {
			errs = append(errs, fmt.Errorf("supervision event that is no fault: %v", e.Reason))
		}
	}
	for _, e := range h.deadLetters {
		if _, late := e.Message.(actor.IgnoreDeadLetterLogging); late {
			continue // news of a connection that nobody has any more
		}
		if kind := fmt.Sprintf("%T", e.Message); strings.HasPrefix(kind, "*actors.") || strings.HasPrefix(kind, "*messages.") {
			errs = append(errs, fmt.Errorf("dead letter %s", kind))
		}
	}
	return errs
}

// throttle is Proto.Actor's: it lives for a second after a dead letter.
var throttle = goleak.IgnoreTopFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1")

// resources is what there was before a scenario on the real machine.
type resources struct {
	goroutines goleak.Option
	files      []string
	processes  []string
}

func resourcesInUse() resources {
	return resources{goleak.IgnoreCurrent(), openFiles(), children()}
}

// leaks tells what a scenario has left: goroutines, file descriptors, processes.
func (s resources) leaks() error {
	var files, processes []string
	for range 200 { // they may take a moment to go
		files, processes = difference(openFiles(), s.files), difference(children(), s.processes)
		if len(files) == 0 && len(processes) == 0 {
			break
		}
		<-time.After(10 * time.Millisecond)
	}
	errs := []error{goleak.Find(s.goroutines, throttle)}
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
	require.NoError(t, s.leaks())
}

// difference returns what is in all and not in known.
func difference(all, known []string) []string {
	return slices.DeleteFunc(all, func(one string) bool { return slices.Contains(known, one) })
}

// openFiles returns the files and sockets that this process has open, each with its
// number. A count would not do: what was open before may be closed meanwhile. The
// runtime's own for waiting are there once the first socket was.
func openFiles() (all []string) {
	files, _ := os.ReadDir("/proc/self/fd")
	for _, f := range files {
		if at, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && !strings.HasPrefix(at, "anon_inode:") {
			all = append(all, f.Name()+" "+at)
		}
	}
	return all
}

// children returns the processes that this one has started.
func children() (pids []string) {
	threads, _ := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		text, _ := os.ReadFile("/proc/self/task/" + thread.Name() + "/children")
		pids = append(pids, strings.Fields(string(text))...)
	}
	return pids
}
