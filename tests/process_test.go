package tests

import (
	"cmp"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/internal/stdioserver"
)

// overStdio runs a scenario on real processes. The server "s" is this test binary.
func overStdio(t *testing.T, trait stdioserver.Trait, cfg supervisor.Config, scenario func(h *harness)) {
	t.Helper()
	overProcess(t, stdioserver.New(t.TempDir(), trait), func(*mcpbridge.Server) {}, cfg, scenario)
}

// overProcess is overStdio for the given process. adapt can change the configuration of the
// server.
func overProcess(t *testing.T, p *stdioserver.Process, adapt func(*mcpbridge.Server), cfg supervisor.Config, scenario func(h *harness)) {
	t.Helper()
	before := resourcesInUse()
	server, err := p.Server("s")
	require.NoError(t, err)
	adapt(&server)
	cfg.Servers, cfg.BackoffBase = append(cfg.Servers, server), cmp.Or(cfg.BackoffBase, time.Millisecond)
	h := start(t, cfg)
	defer h.stop() // also when the scenario fails
	h.executed = func() map[string]int {
		runs, err := p.Executions()
		require.NoError(t, err)
		return runs
	}
	h.overlaps = func() []string {
		scopes, err := p.Overlaps()
		require.NoError(t, err)
		return scopes
	}
	scenario(h)
	h.stopAndVerify()
	before.verify(t)
}

// heap returns how much memory is in use.
func heap() uint64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// awaitExecution waits until a call has begun to run.
func (h *harness) awaitExecution(op *messages.CallTool) {
	h.t.Helper()
	require.Eventually(h.t, func() bool { return h.executed()[op.ID] > 0 }, 10*time.Second, time.Millisecond)
}

// pid asks a server for its process id.
func pid(t *testing.T, p *sentCommand) int {
	t.Helper()
	n, err := strconv.Atoi(p.text())
	require.NoError(t, err)
	return n
}

// kill kills a process.
func kill(t *testing.T, pid int) {
	t.Helper()
	process, err := os.FindProcess(pid)
	require.NoError(t, err)
	require.NoError(t, process.Kill())
}

func requireExit(t *testing.T, pid int) {
	t.Helper()
	require.Eventually(t, func() bool { return !alive(pid) }, 5*time.Second, time.Millisecond, "process %d lives", pid)
}

// A7
func TestCommandThatCannotBeStartedSaysWhy(t *testing.T) {
	text := t.TempDir() + "/text"
	require.NoError(t, os.WriteFile(text, nil, 0o600))
	cfg := supervisor.Config{
		BackoffBase: 250 * time.Millisecond,
		Servers:     []mcpbridge.Server{{Name: "none", Command: "no-such-command"}, {Name: "text", Command: text}},
	}
	overStdio(t, "", cfg, func(h *harness) {
		require.Contains(t, h.send(call("a", "pid", on("none"))).fails(messages.CodeUnavailable).Detail, "not found")
		require.Contains(t, h.send(call("a", "pid", on("text"))).fails(messages.CodeUnavailable).Detail, "permission denied")
		for range 50 {
			h.send(call("a", "pid", on("none"), within(5*time.Millisecond))).reply()
		}
		// The delays between dials are random. A loop without delays dials for each call.
		require.Less(t, h.dials.dialed(), 20, "no hot loop")
	})
}

// C1, C2: the annotations of the tool are known, or are not known yet and must be fetched.
func TestProcessThatIsKilledDuringACall(t *testing.T) {
	for name, known := range map[string]bool{"after a list": true, "without a list": false} {
		t.Run(name, func(t *testing.T) {
			overStdio(t, "", supervisor.Config{}, func(h *harness) {
				if known {
					h.send(&messages.ListTools{Header: messages.To("s", "a")}).reply()
				}
				one, two := call("a", "wait"), call("a", "wait/ro")
				plain, safe := h.send(one), h.send(two)
				other := pid(t, h.send(call("b", "pid")))
				h.awaitExecution(one)
				h.awaitExecution(two)
				kill(t, pid(t, h.send(call("a", "pid"))))
				f := plain.fails(messages.CodeLost)
				require.True(t, f.MayHaveRun)
				require.False(t, f.Replayed)
				require.EqualValues(t, 1, f.Generation, "that it ran in")
				require.Contains(t, f.Detail, "killed")
				r := safe.ok()
				require.True(t, r.Replayed)
				require.EqualValues(t, 2, r.Generation)
				require.Equal(t, other, pid(t, h.send(call("b", "pid"))), "other keys notice nothing")
			})
		})
	}
}

// C5
func TestProcessThatHangsIsEndedWithinBounds(t *testing.T) {
	overStdio(t, "", supervisor.Config{CloseTimeout: 500 * time.Millisecond, DrainTimeout: 100 * time.Millisecond}, func(h *harness) {
		hung := pid(t, h.send(call("a", "pid")))
		suspend(t, hung)
		big := call("a", "pid", within(200*time.Millisecond), with("scope", strings.Repeat("x", 1<<20)))
		h.send(big).fails(messages.CodeDeadline)
		began := time.Now()
		closed := h.send(&messages.CloseAll{}).reply().(*messages.Closed)
		require.Empty(t, closed.Left)
		require.Equal(t, 1, closed.Sessions)
		require.Less(t, time.Since(began), 5*time.Second)
		requireExit(t, hung)
	})
}

// E7
func TestStubbornProcessIsEndedWithItsChildren(t *testing.T) {
	overStdio(t, stdioserver.Stubborn, supervisor.Config{CloseTimeout: time.Second}, func(h *harness) {
		server := pid(t, h.send(call("a", "pid")))
		child := pid(t, h.send(call("a", "spawn")))
		require.True(t, alive(child))
		process, err := os.FindProcess(child)
		require.NoError(t, err)
		defer process.Kill() // a test that fails leaves none
		began := time.Now()
		require.Equal(t, 1, h.send(&messages.CloseAll{}).reply().(*messages.Closed).Sessions)
		require.Less(t, time.Since(began), 3*time.Second)
		requireExit(t, server)
		requireExit(t, child)
	})
}

// C1: a child process keeps the stdout of the killed process open.
func TestKilledProcessWhoseChildHoldsItsStdoutIsNoticed(t *testing.T) {
	overStdio(t, "", supervisor.Config{}, func(h *harness) {
		h.send(&messages.ListTools{Header: messages.To("s", "a")}).reply()
		child := pid(t, h.send(call("a", "spawn")))
		server := pid(t, h.send(call("a", "pid")))
		op := call("a", "wait")
		waiting := h.send(op)
		h.awaitExecution(op)
		began := time.Now()
		kill(t, server)
		waiting.fails(messages.CodeLost)
		require.Less(t, time.Since(began), 5*time.Second)
		requireExit(t, child)
	})
}
