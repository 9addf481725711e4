//go:build unix

package stdio

import (
	"os"
	"syscall"
)

func terminateGroup(leader *os.Process) { signalGroup(leader, syscall.SIGTERM) }

func killGroup(leader *os.Process) { signalGroup(leader, syscall.SIGKILL) }

// signalGroup signals all of a group. It does not matter whether it arrives: a
// group that cannot be signalled has ended.
func signalGroup(leader *os.Process, sig syscall.Signal) {
	syscall.Kill(-leader.Pid, sig) //nolint:errcheck // see above
}
