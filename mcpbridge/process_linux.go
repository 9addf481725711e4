package mcpbridge

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// groupLeader makes a process the leader of a group, and has the kernel kill it
// when the thread that started it ends: when we die, then.
func groupLeader() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// awaitExit waits for the end of a process and leaves it to be reaped.
func awaitExit(cmd *exec.Cmd) {
	for unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}
