//go:build unix && !linux

package stdio

import (
	"os"
	"os/exec"
	"syscall"
)

// groupLeader makes a process the leader of a group. When we end, the
// [watchdogShell] kills it.
func groupLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// awaitExit waits for the end of a process, and has to reap it. So the group is
// killed a moment after its number has become free. That kills another group only if
// ours has no member left and the system has given its number away in that moment.
func awaitExit(cmd *exec.Cmd) {
	cmd.Wait() //nolint:errcheck // it is in ProcessState
}

// reapGroup does nothing: we do not become the parent of orphans.
func reapGroup(int) {}

// pending is unknown here.
func pending(*os.File) int { return 0 }

// unread closes a pipe. How much nobody has read is unknown here.
func unread(f *os.File) int64 {
	f.Close()
	return -1
}
