package mcpbridge

import (
	"os"
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

// unread returns how many bytes of a pipe nobody has read, from either end.
func unread(f *os.File) int64 {
	n := -1
	if raw, err := f.SyscallConn(); err == nil {
		raw.Control(func(fd uintptr) { //nolint:errcheck // then it is not known
			if left, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ); err == nil {
				n = left
			}
		})
	}
	return int64(n)
}
