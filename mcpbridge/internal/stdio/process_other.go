//go:build !unix

package stdio

import (
	"os"
	"os/exec"
	"syscall"
)

// Without process groups only the leader is ended. Children of a server that do
// not end with their input remain, and so does the leader when this process is
// killed. There is no signal that asks a process to end.

func groupLeader() *syscall.SysProcAttr { return nil }

func awaitExit(cmd *exec.Cmd) {
	cmd.Wait() //nolint:errcheck // it is in ProcessState
}

func terminateGroup(leader *os.Process) { killGroup(leader) }

func killGroup(leader *os.Process) {
	leader.Kill() //nolint:errcheck // it may have ended
}

func reapGroup(int) {}

var watchdog watchdogShell

type watchdogShell struct{}

func (watchdogShell) add(int)    {}
func (watchdogShell) remove(int) {}

// pending returns 0: how much is in a pipe is unknown here.
func pending(*os.File) int { return 0 }

// unread closes a pipe, and returns -1: how much is left in it is unknown here.
func unread(f *os.File) int64 {
	f.Close()
	return -1
}
