package tests

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/internal/stdioserver"
)

// stderrs keeps what servers write to stderr, by key.
type stderrs struct {
	hold chan struct{} // if it is not nil, each Write waits for it

	mu  sync.Mutex
	all map[messages.Key][]string
}

// stderrOf is the writer of one key.
type stderrOf struct {
	*stderrs
	key messages.Key
}

func (w stderrOf) Write(p []byte) (int, error) {
	if w.hold != nil {
		<-w.hold
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all[w.key] = append(w.all[w.key], string(p))
	return len(p), nil
}

// of returns the lines of a scope.
func (s *stderrs) of(scope string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.all[keyOf("s", scope)])
}

// await waits until there are n lines of a scope.
func (s *stderrs) await(t *testing.T, scope string, n int) []string {
	t.Helper()
	require.Eventually(t, func() bool { return len(s.of(scope)) >= n }, 20*time.Second, time.Millisecond)
	return s.of(scope)
}

// shell makes a server write to stderr with a command of the shell, before it serves.
func (s *stderrs) shell(script string) func(*mcpbridge.Server) {
	s.all = map[messages.Key][]string{}
	return func(srv *mcpbridge.Server) {
		srv.Env["TOKEN"] = "hunter22-hunter22"
		srv.Args = []string{"-c", script + `; exec "$0"`, srv.Command}
		srv.Command = "/bin/sh"
		srv.Stderr = func(key messages.Key) io.Writer { return stderrOf{s, key} }
	}
}

// The writer of a key gets what each of its processes writes, from its start on, also after a crash and a restart. Secrets
// are blacked out.
func TestStderrHasTheLinesOfAllProcessesOfAKey(t *testing.T) {
	var out stderrs
	adapt := out.shell(`echo "starting with $TOKEN" >&2; printf 'one\r\n\n\033[31mtwo\n' >&2`)
	overProcess(t, stdioserver.New(t.TempDir(), ""), adapt, supervisor.Config{}, func(h *harness) {
		first := pid(t, h.send(call("a", "pid")))
		start := []string{"starting with …\n", "one\n", "[31mtwo\n"}
		require.Equal(t, start, out.await(t, "a", 3))

		kill(t, first)
		requireExit(t, first)
		h.send(call("a", "pid")).reply()
		require.Equal(t, slices.Repeat(start, 2), out.await(t, "a", 6), "of the next process")
		h.send(&messages.Restart{Key: keyOf("s", "a")}).done()
		require.Equal(t, slices.Repeat(start, 3), out.await(t, "a", 9), "of the next session")
		h.send(call("a", "exit")).fails(messages.CodeLost)
		require.Contains(t, out.await(t, "a", 10)[9], "out of memory")

		h.send(call("b", "flood", with("size", 100_000))).ok()
		long := out.await(t, "b", 4)[3]
		require.LessOrEqual(t, len(long), 4<<10+1)
		require.True(t, strings.HasSuffix(long, "x…\n"))
	})
}

func TestStderrSaysWhyAServerDoesNotStart(t *testing.T) {
	var out stderrs
	overProcess(t, stdioserver.New(t.TempDir(), stdioserver.Dies), out.shell("true"), supervisor.Config{}, func(h *harness) {
		h.send(call("a", "pid", within(5*time.Second))).fails(messages.CodeUnavailable)
		require.Equal(t, []string{"reading configuration\n", "no license found\n"}, out.await(t, "a", 2)[:2])
	})
}

// A writer that blocks delays no process, no call and no close, and memory does not grow.
func TestStderrOfAWriterThatBlocksIsBounded(t *testing.T) {
	const n = 200_000
	out := stderrs{hold: make(chan struct{})}
	adapt := out.shell(fmt.Sprintf(`yes "a line of the log that is sixty-four characters long, or so it is" | head -n %d >&2`, n))
	overProcess(t, stdioserver.New(t.TempDir(), ""), adapt, supervisor.Config{}, func(h *harness) {
		before := heap()
		h.send(call("a", "pid")).ok()
		require.Less(t, heap(), before+4<<20)
		h.send(call("a", "flood", with("size", 10))).ok()
		h.send(&messages.CloseSession{Key: keyOf("s", "a")}).closed()
		require.Empty(t, out.of("a"))
		close(out.hold)
		require.Eventually(t, func() bool {
			lines := out.of("a")
			return len(lines) > 0 && lines[len(lines)-1] == "xxxxxxxxxx\n"
		}, 20*time.Second, time.Millisecond)
		written, dropped := 0, 0
		for _, line := range out.of("a") {
			var more int
			if _, err := fmt.Sscanf(line, "… %d lines were dropped", &more); err != nil {
				written++
			}
			dropped += more
		}
		require.Less(t, written, 300)
		require.Equal(t, n+1, written+dropped)
	})
}
