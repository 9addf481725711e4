//go:build unix && !linux

package stdio

import (
	"os"
	"os/exec"
	"syscall"
)

// groupLeader makes a process the leader of a group. When this process ends, the
// [watchdogShell] kills the group.
func groupLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// awaitExit waits for the end of a process, and reaps it: there is no other way here. So the group is
// killed a moment after its leader was reaped. That kills another group only if
// this one has no member left, and the system has reused its number in that moment.
func awaitExit(cmd *exec.Cmd) {
	cmd.Wait() //nolint:errcheck // it is in ProcessState
}

// reapGroup does nothing: this process does not become the parent of orphans.
func reapGroup(int) {}

// pending returns 0: how much is in a pipe is unknown here.
func pending(*os.File) int { return 0 }

// unread closes a pipe, and returns -1: how much is left in it is unknown here.
func unread(f *os.File) int64 {
	f.Close()
	return -1
}
