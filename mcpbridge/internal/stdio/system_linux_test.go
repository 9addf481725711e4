package stdio

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// starters are the acts that start servers: with what Linux has, without a cgroup, and as on another Unix system.
var starters = []string{"starter", "starter in a group", "starter on Unix"}

func init() {
	testServers["starter in a group"] = func() { ownCgroup = noCgroup; startForEver() }
	testServers["starter on Unix"] = func() { ownerEnded, ownCgroup = 0, noCgroup; startForEver() }
}

func noCgroup() string { return "" }

// alive reports whether a process exists and is no zombie: who adopts ours
// may take his time to reap them.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

// ownerAttr makes a program the leader of a session, by which [leftOf] finds what it starts.
func ownerAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

func leftOf(t *testing.T, program *exec.Cmd) (left []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	for _, path := range stats {
		stat, _ := os.ReadFile(path) // it may be gone
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if len(fields) > 3 && fields[3] == fmt.Sprint(program.Process.Pid) && alive(pid) {
			left = append(left, pid)
		}
	}
	return left
}
