//go:build unix

package gateway

import (
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// requireKilled checks that a process is killed 2 s after its client has left, or earlier: many clients do not give more time to
// what they have started. The rest is for a machine that is busy.
func requireKilled(t *testing.T, pid int, left time.Time) {
	t.Helper()
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) == syscall.ESRCH }, 20*time.Second, 10*time.Millisecond, "it would run for a minute")
	require.Less(t, time.Since(left), 3500*time.Millisecond)
}

// The process of a server that does not end with its input, and ignores signals, is killed when its client leaves.
func TestProcessThatDoesNotEndIsKilledWithItsClient(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	w := newWorld(t, nil, mcpbridge.Server{Name: "s", Command: self, Env: map[string]string{processVar: stubborn, "GORACE": "atexit_sleep_ms=0"}})
	text, isError := w.call(w.connect(nil), "pid", nil)
	require.False(t, isError, text)
	pid, err := strconv.Atoi(text)
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(pid, 0), "it runs")
	left := time.Now()
	w.ends[0]()
	requireKilled(t, pid, left)
	w.stop()
}

// A client leaves while the process of its server starts: the process is killed.
func TestProcessThatStartsEndsWithItsClient(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "pid")
	w := newWorld(t, nil, mcpbridge.Server{Name: "s", Command: self, Env: map[string]string{processVar: silent, fileVar: file}})
	r := w.raw()
	r.send(initialize)
	pid := 0
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		pid, _ = strconv.Atoi(string(text))
		return err == nil && pid != 0
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, syscall.Kill(pid, 0), "it runs")
	left := time.Now()
	w.ends[0]()
	requireKilled(t, pid, left)
	w.stop()
}
