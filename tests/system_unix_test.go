//go:build unix

package tests

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// alive reports whether a process runs. A zombie does not run.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return runtime.GOOS != "linux" && syscall.Kill(pid, 0) == nil
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	return !strings.HasPrefix(rest, "Z") || len(tasks) > 1
}

// suspend stops a process.
func suspend(t *testing.T, pid int) {
	t.Helper()
	require.NoError(t, syscall.Kill(pid, syscall.SIGSTOP))
}
