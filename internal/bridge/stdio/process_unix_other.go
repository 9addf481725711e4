//go:build unix && !linux

package stdio

import (
	"os"
	"os/exec"
	"syscall"
)

// groupLeader makes a process the leader of a group. When we die it is the
// [watchdogShell] that kills it.
func groupLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}

// awaitExit waits for the end of a process. It has to reap it, so the group is
// killed a moment after its number has become free. That hits another only if
// the group has no member left and the system gave its number away just then.
func awaitExit(cmd *exec.Cmd) {
	cmd.Wait() //nolint:errcheck // it is in ProcessState
}

// reapGroup has nothing to do: orphans are not given to us.
func reapGroup(int) {}

// pending cannot be told here.
func pending(*os.File) int { return 0 }

// unread closes a pipe. What nobody has read of it cannot be told here.
func unread(f *os.File) int64 {
	f.Close()
	return -1
}
