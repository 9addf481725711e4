//go:build unix

package stdio

import (
	"os"
	"syscall"
)

func terminateGroup(leader *os.Process) { signalGroup(leader, syscall.SIGTERM) }

func killGroup(leader *os.Process) { signalGroup(leader, syscall.SIGKILL) }

// signalGroup sends a signal to all members of a group. It ignores errors: a
// group that gets no signal has ended.
func signalGroup(leader *os.Process, sig syscall.Signal) {
	syscall.Kill(-leader.Pid, sig) //nolint:errcheck // see above
}
