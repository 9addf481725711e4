package tests

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/internal/stdioserver"
)

// follower is an actor that collects lines.
type follower struct {
	pid  *actor.PID
	hold chan struct{} // if it is not nil, each line waits for it

	mu    sync.Mutex
	lines []messages.StderrLine
}

// follow spawns a follower.
func (h *harness) follow(hold chan struct{}) *follower {
	f := &follower{hold: hold}
	f.pid = h.system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if line, ok := c.Message().(*messages.StderrLine); ok {
			if f.hold != nil {
				<-f.hold
			}
			f.mu.Lock()
			defer f.mu.Unlock()
			f.lines = append(f.lines, *line)
		}
	}))
	return f
}

// stop stops the actor, and waits for that.
func (f *follower) stop(h *harness) {
	h.t.Helper()
	h.system.Root.Stop(f.pid)
	require.Eventually(h.t, func() bool {
		_, there := h.system.ProcessRegistry.Get(f.pid)
		return !there
	}, 10*time.Second, time.Millisecond)
}

// all returns the lines so far, and how many were dropped.
func (f *follower) all() (lines []string, dropped int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range f.lines {
		lines = append(lines, line.Line)
		dropped += int(line.Dropped)
	}
	return lines, dropped
}

// await waits until there are n lines, those that were dropped included.
func (f *follower) await(t *testing.T, n int) []string {
	t.Helper()
	require.Eventually(t, func() bool {
		lines, dropped := f.all()
		return len(lines)+dropped >= n
	}, 20*time.Second, time.Millisecond)
	lines, _ := f.all()
	return lines
}

// shell returns a server that writes to stderr with a command of the shell, and then serves.
func shell(t *testing.T, script string) func(*mcpbridge.Server) {
	t.Helper()
	return func(s *mcpbridge.Server) {
		s.Env["TOKEN"] = "hunter22-hunter22"
		s.Args = []string{"-c", script + `; exec "$0"`, s.Command}
		s.Command = "/bin/sh"
	}
}

// The subscriber gets what each process of the session writes, from its start on, also
// after a crash and a restart. Secrets are blacked out.
func TestTailSendsTheLinesOfTheSession(t *testing.T) {
	adapt := shell(t, `echo "starting with $TOKEN" >&2; printf 'one\r\n\n\033[31mtwo\n' >&2`)
	overProcess(t, stdioserver.New(t.TempDir(), ""), adapt, supervisor.Config{}, func(h *harness) {
		f := h.follow(nil)
		h.send(&messages.Tail{ID: "7", Key: keyOf("s", "a"), Subscriber: f.pid}).done()
		require.Zero(t, h.dials.dialed(), "it opens nothing")
		h.send(call("b", "pid")).ok()
		first := pid(t, h.send(call("a", "pid")))
		start := []string{"starting with …", "one", "[31mtwo"}
		require.Equal(t, start, f.await(t, 3))
		require.Equal(t, keyOf("s", "a"), f.lines[0].Key)
		require.NotContains(t, fmt.Sprint(&f.lines[0]), "starting")

		kill(t, first)
		requireExit(t, first)
		h.send(call("a", "pid")).reply()
		require.Equal(t, append(start, start...), f.await(t, 6), "of the next process")
		h.send(&messages.Restart{Key: keyOf("s", "a")}).done()
		require.Len(t, f.await(t, 9), 9, "of the next session")
		h.send(call("a", "exit")).fails(messages.CodeLost)
		require.Contains(t, f.await(t, 10)[9], "out of memory")

		h.send(call("a", "flood", with("size", 100_000))).ok()
		long := f.await(t, 14)
		require.LessOrEqual(t, len(long[len(long)-1]), 4<<10)
		require.True(t, strings.HasSuffix(long[len(long)-1], "x…"))

		h.send(&messages.Tail{Key: keyOf("s", "a")}).done()
		h.send(call("a", "flood", with("size", 10))).ok()
		h.send(&messages.CloseSession{Key: keyOf("s", "a")}).closed()
		before, dropped := f.all()
		require.Zero(t, dropped)
		h.send(call("a", "pid")).ok()
		after, _ := f.all()
		require.Equal(t, before, after, "the tail has ended")
	})
}

// A tail ends with its session.
func TestTailEndsWithItsSession(t *testing.T) {
	overProcess(t, stdioserver.New(t.TempDir(), ""), shell(t, `echo started >&2`), supervisor.Config{}, func(h *harness) {
		f := h.follow(nil)
		h.send(&messages.Tail{Key: keyOf("s", "a"), Subscriber: f.pid}).done()
		h.send(call("a", "pid")).ok()
		f.await(t, 1)
		h.send(&messages.CloseSession{Key: keyOf("s", "a")}).closed()
		h.send(call("a", "pid")).ok()
		h.send(&messages.CloseScope{Scope: "a"}).closed()
		lines, _ := f.all()
		require.Equal(t, []string{"started"}, lines)
	})
}

// A server that cannot start is heard, too.
func TestTailShowsWhyAServerDoesNotStart(t *testing.T) {
	overStdio(t, stdioserver.Dies, supervisor.Config{}, func(h *harness) {
		f := h.follow(nil)
		h.send(&messages.Tail{Key: keyOf("s", "a"), Subscriber: f.pid}).done()
		h.send(call("a", "pid", within(5*time.Second))).fails(messages.CodeUnavailable)
		require.Equal(t, []string{"reading configuration", "no license found"}, f.await(t, 2)[:2])
	})
}

// A subscriber that is slow makes no process wait, and memory does not grow: it gets 64
// lines, 64 more wait, and the rest is dropped and counted.
func TestTailOfASlowSubscriberIsBounded(t *testing.T) {
	const n = 200_000
	adapt := shell(t, fmt.Sprintf(`yes "a line of the log that is sixty-four characters long, or so it is" | head -n %d >&2`, n))
	overProcess(t, stdioserver.New(t.TempDir(), ""), adapt, supervisor.Config{}, func(h *harness) {
		hold := make(chan struct{})
		f := h.follow(hold)
		h.send(&messages.Tail{Key: keyOf("s", "a"), Subscriber: f.pid}).done()
		before := heap()
		h.send(call("a", "pid")).ok()
		require.Less(t, heap(), before+4<<20)
		close(hold)
		h.send(call("a", "flood", with("size", 10))).ok()
		require.Eventually(t, func() bool {
			lines, dropped := f.all()
			return len(lines)+dropped == n+1
		}, 20*time.Second, time.Millisecond)
		lines, dropped := f.all()
		require.Less(t, len(lines), 200)
		require.Greater(t, dropped, n-200)
		runtime.KeepAlive(f)
	})
}

// A subscriber that keeps up gets thousands of lines.
func TestTailSendsThousandsOfLines(t *testing.T) {
	adapt := shell(t, `i=0; while [ $i -lt 5000 ]; do echo $i >&2; i=$((i+1)); done`)
	overProcess(t, stdioserver.New(t.TempDir(), ""), adapt, supervisor.Config{}, func(h *harness) {
		f := h.follow(nil)
		h.send(&messages.Tail{Key: keyOf("s", "a"), Subscriber: f.pid}).done()
		h.send(call("a", "pid")).ok()
		h.send(call("a", "flood", with("size", 10))).ok()
		f.await(t, 5001)
		lines, dropped := f.all()
		require.Equal(t, 5001, len(lines)+dropped)
	})
}

// A subscriber that stops ends its tail, and not its subscriptions of others.
func TestTailOfASubscriberThatStopsEnds(t *testing.T) {
	overStdio(t, "", supervisor.Config{}, func(h *harness) {
		f := h.follow(nil)
		h.send(&messages.Tail{Key: keyOf("s", "a"), Subscriber: f.pid}).done()
		h.send(call("a", "flood", with("size", 10))).ok()
		f.await(t, 1)
		f.stop(h)
		for range 100 {
			h.send(call("a", "flood", with("size", 10))).ok()
		}
		gone := h.follow(nil)
		gone.stop(h)
		h.send(&messages.Tail{Key: keyOf("s", "a"), Subscriber: gone.pid}).done()
		h.send(call("a", "flood", with("size", 10))).ok()
		second := h.follow(nil)
		h.send(&messages.Tail{Key: keyOf("s", "a"), Subscriber: second.pid}).done()
		h.send(call("a", "flood", with("size", 7))).ok()
		require.Eventually(t, func() bool { // an earlier line may be read late
			lines, _ := second.all()
			return slices.Contains(lines, "xxxxxxx")
		}, 10*time.Second, time.Millisecond)
		lines, _ := f.all()
		require.Len(t, lines, 1)
	})
}

// A further Tail replaces the subscriber. Commands that cannot be carried out say why.
func TestTailIsRejectedWhereThereIsNoStderr(t *testing.T) {
	cfg := supervisor.Config{Servers: []mcpbridge.Server{{Name: "process", Command: "none"}}, IdleTimeout: time.Minute}
	inFakeTime(t, cfg, func(h *harness) {
		f := h.follow(nil)
		detail := h.send(&messages.Tail{ID: "1", Key: keyOf("s", "a"), Subscriber: f.pid}).fails(messages.CodeInvalid).Detail
		require.Contains(t, detail, `key.server: "s" has no command`)
		h.send(&messages.Tail{Key: keyOf("none", "a"), Subscriber: f.pid}).fails(messages.CodeUnknownServer)
		h.send(&messages.Tail{Key: keyOf("process", "a\n"), Subscriber: f.pid}).fails(messages.CodeInvalid)
		h.send(&messages.Tail{Key: keyOf("process", "a")}).done()
		require.Empty(t, h.inspect().Sessions)

		h.send(&messages.Tail{Key: keyOf("process", "a"), Subscriber: f.pid}).done()
		require.Len(t, h.inspect().Sessions, 1)
		time.Sleep(61 * time.Second) // synctest: it ends like any session that is not used
		require.Empty(t, h.inspect().Sessions)
		synctest.Wait()
		f.stop(h)
	})
}

// A Tail that comes while the session is replaced concerns the old process and the new one.
func TestTailThatChangesDuringARestartCounts(t *testing.T) {
	cfg := supervisor.Config{Servers: []mcpbridge.Server{{Name: "process", Command: "none"}}}
	for _, replaced := range []bool{false, true} {
		inFakeTime(t, cfg, func(h *harness) {
			dials := make(chan dial.Request, 2)
			h.server.set(func() {
				h.server.dial = func(_ context.Context, req dial.Request) error {
					dials <- req
					return nil
				}
			})
			before, after := h.follow(nil), h.follow(nil)
			h.send(&messages.Tail{Key: keyOf("process", "a"), Subscriber: before.pid}).done()
			slow := h.send(call("a", "slow", on("process")))
			synctest.Wait()
			restart, tail, want := h.send(&messages.Restart{Key: keyOf("process", "a")}), &messages.Tail{Key: keyOf("process", "a")}, []string(nil)
			if replaced {
				tail.Subscriber, want = after.pid, []string{"the last line of the old one", "the first line of the new one"}
			}
			h.send(tail).done()
			synctest.Wait()
			(<-dials).Stderr.Put(func() string { return "the last line of the old one" })
			slow.ok()
			restart.done()
			(<-dials).Stderr.Put(func() string { return "the first line of the new one" })
			synctest.Wait()
			lines, _ := before.all()
			require.Empty(t, lines)
			lines, _ = after.all()
			require.Equal(t, want, lines)
			before.stop(h)
			after.stop(h)
		})
	}
}
