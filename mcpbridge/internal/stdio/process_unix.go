//go:build unix

package stdio

import (
	"os"
	"syscall"
)

func terminateGroup(leader *os.Process) { signalGroup(leader, syscall.SIGTERM) }

func killGroup(leader *os.Process) { signalGroup(leader, syscall.SIGKILL) }

// signalGroup signals all members of a group. An error does not matter: a
// group that cannot be signalled has ended.
func signalGroup(leader *os.Process, sig syscall.Signal) {
	syscall.Kill(-leader.Pid, sig) //nolint:errcheck // see above
}
