package stdio

import (
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// ownerEnded is the signal that a server gets when the thread that has started it ends, and therefore when this process
// ends.
var ownerEnded = syscall.SIGKILL

// serverAttr returns the attributes of a server.
func serverAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: ownerEnded} }

// awaitExit waits for the end of the server without reaping it.
func (g *group) awaitExit(cmd *exec.Cmd) {
	defer orphans.watch(g)()
	for unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil) == unix.EINTR {
	}
}
