//go:build real

package real

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// startVar is an environment variable with which this test binary runs runStarting.
const startVar = "MCPACTOR_TEST_START"

// runStarting is a stdio server that sleeps, uses processor time, or hangs before it answers: "sleep 1s", "burn 2s", "hang".
func runStarting(how string) {
	what, text, _ := strings.Cut(how, " ")
	d, _ := time.ParseDuration(text)
	switch what {
	case "sleep":
		time.Sleep(d)
	case "burn":
		for spent(syscall.RUSAGE_SELF) < d {
		}
	case "hang":
		select {}
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "starting", Version: "1"}, nil)
	if err := server.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// spent returns the processor time of this process, or of its children that have ended.
func spent(who int) time.Duration {
	var of syscall.Rusage
	if err := syscall.Getrusage(who, &of); err != nil {
		panic(err)
	}
	return time.Duration(of.Utime.Nano() + of.Stime.Nano())
}

// idle returns how long the processors have been idle, all together.
func idle(t *testing.T) time.Duration {
	text, err := os.ReadFile("/proc/stat")
	require.NoError(t, err)
	hundredths, err := strconv.Atoi(strings.Fields(string(text))[4])
	require.NoError(t, err)
	return time.Duration(hundredths) * 10 * time.Millisecond
}

// starting returns the configuration of such servers.
func starting(t *testing.T, name, how string, count int) (servers []mcpbridge.Server) {
	exe, err := os.Executable()
	require.NoError(t, err)
	for i := range count {
		servers = append(servers, mcpbridge.Server{Name: fmt.Sprint(name, "-", i), Command: exe, Env: map[string]string{startVar: how, "GORACE": "atexit_sleep_ms=0"}})
	}
	return servers
}

// openEach opens a session of each server at once, in a scope of its own. It returns how long the slowest took.
func (h *harness) openEach(servers []mcpbridge.Server, limit time.Duration) time.Duration {
	h.t.Helper()
	began := time.Now()
	var all []*sentCommand
	for i, srv := range servers {
		open := &messages.Open{Header: messages.To(srv.Name, fmt.Sprint(i))}
		open.Deadline = began.Add(limit)
		all = append(all, h.send(open))
	}
	h.limit = began.Add(limit + scenarioTimeout)
	for _, open := range all {
		require.IsType(h.t, &messages.SessionInfo{}, open.reply())
	}
	return time.Since(began)
}

// requireNoFaults checks that no dial has failed.
func (h *harness) requireNoFaults() {
	require.Zero(h.t, countEvents[*messages.SessionRestarting](h))
	require.Zero(h.t, countEvents[*messages.SessionGaveUp](h))
}

func TestServersThatSleepAtTheirStartComeUpTogether(t *testing.T) {
	h := newHarness(t)
	servers := starting(t, "sleeps", "sleep 1s", 24)
	h.start(supervisor.Config{MaxStarts: 12}, servers...)
	took := h.openEach(servers, time.Minute)
	t.Logf("%d servers that sleep for a second after %v", len(servers), took)
	require.Less(t, took, 3*time.Second)
	h.requireNoFaults()
}

// What other programs of the machine use is not counted: neither the processors idle while processes wait, nor
// do we use much more than the processes need.
func TestServersThatNeedProcessorTimeAtTheirStartKeepTheProcessorsBusy(t *testing.T) {
	h := newHarness(t)
	const sum = 24 * time.Second
	servers := starting(t, "burns", "burn 1s", 24)
	h.start(supervisor.Config{}, servers...)
	idleBefore, ownBefore, othersBefore := idle(t), spent(syscall.RUSAGE_SELF), spent(syscall.RUSAGE_CHILDREN)
	took := h.openEach(servers, 5*time.Minute)
	idled := idle(t) - idleBefore
	require.NoError(t, h.stop())
	used := spent(syscall.RUSAGE_SELF) - ownBefore + spent(syscall.RUSAGE_CHILDREN) - othersBefore
	t.Logf("%d servers that use a second after %v: %v were used, %v were idle", len(servers), took, used, idled)
	require.Less(t, idled+used, sum*12/10)
	require.Greater(t, used, sum, "they have used it")
	h.requireNoFaults()
}

// A start that hangs delays no first call of another server.
func TestAServerThatHangsAtItsStartDelaysNoOtherServer(t *testing.T) {
	h := newHarness(t)
	hangs, alone, beside := starting(t, "hangs", "hang", 1), starting(t, "alone", "sleep 0s", 6), starting(t, "beside", "sleep 0s", 6)
	h.start(supervisor.Config{ConnectTimeout: 10 * time.Second}, append(append(hangs, alone...), beside...)...)
	slowest := func(servers []mcpbridge.Server) (most time.Duration) {
		for i := range servers {
			most = max(most, h.openEach(servers[i:i+1], 20*time.Second))
		}
		return most
	}
	before := slowest(alone)
	for i := range 24 {
		open := &messages.Open{Header: messages.To("hangs-0", fmt.Sprint(i))}
		open.Deadline = time.Now().Add(15 * time.Second)
		h.send(open)
	}
	during := slowest(beside)
	t.Logf("the slowest of 6 first calls took %v, and %v while a server hangs", before, during)
	require.Less(t, during, before+300*time.Millisecond)
}

// These processes stand in for npx, which needs as much processor time: half of them are of one server.
func TestManyProcessesThatNeedProcessorTimeAllOpen(t *testing.T) {
	count := 200
	if testing.Short() {
		count = 24
	}
	h := newHarness(t)
	servers := starting(t, "burns", "burn 2s", count/2)
	h.start(supervisor.Config{CloseTimeout: endTimeout / 2}, servers...)
	took := h.openEach(append(servers, slices.Repeat(servers[:1], count/2)...), 10*time.Minute)
	t.Logf("%d processes that use 2 s after %v, on %d processors", count, took, runtime.GOMAXPROCS(0))
	h.requireNoFaults()
}
