//go:build unix

package stdio

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"syscall"
)

// guardScript waits for the end of its input, which is the end of this process, in whatever way it comes. Then it kills the
// cgroup $1, if there is one, and its own group, and with that itself.
const guardScript = `
trap '' HUP INT QUIT TERM USR1 USR2 ALRM ABRT PIPE PROF VTALRM XCPU XFSZ TSTP TTIN TTOU
read -r end
if [ -n "$1" ]; then
	echo 1 > "$1/cgroup.kill"
	for try in 1 2 3 4 5 6 7 8 9 10; do
		rmdir "$1" && break
		sleep 0.02
	done
fi 2>/dev/null
kill -s KILL 0
`

// group is the process group of a server.
//
// Its leader is its guard, a shell that outlives this process, if only to kill the group. The server joins the group when it
// is started, before it runs its own first instruction. Therefore no process of the group is without a guard at any
// moment. The number of the group is valid until the guard is reaped, even if the server has left the group.
//
// A process that leaves the group (setsid) is killed only if the group has a cgroup, which nothing leaves.
//
// Without /bin/sh the server leads the group. Then its children survive a SIGKILL of this process. They also do
// if somebody kills the guard. If only files or processes are short, the server is not started.
type group struct {
	guard  *exec.Cmd // nil without /bin/sh
	life   *os.File  // the input of the guard, which only this process has open; nil without a guard
	cgroup *cgroup   // nil without the right to make one
	leader *os.Process
}

// newGroup makes a group without a server. The caller calls release in the end.
func newGroup() (*group, error) {
	in, life, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	g := &group{cgroup: newCgroup()}
	guard := exec.Command("/bin/sh", "-c", guardScript, "sh", g.cgroup.path())
	guard.Stdin = in
	guard.Dir = "/"        // keeps no file system busy
	guard.Env = []string{} // needs no secrets
	guard.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	switch err := guard.Start(); {
	case err == nil:
		g.guard, g.life = guard, life
		return g, nil
	case isShortage(err):
		life.Close()
		g.release()
		return nil, err
	default: // there is no /bin/sh
		life.Close()
		return g, nil
	}
}

// isShortage reports whether an error is a shortage of files, processes or memory, which may pass.
func isShortage(err error) bool {
	return slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM}, func(shortage error) bool { return errors.Is(err, shortage) })
}

// start starts a server in the group, which has none yet. command makes the command anew at each call.
func (g *group) start(command func() *exec.Cmd) (*exec.Cmd, error) {
	cmd := command()
	cmd.SysProcAttr = serverAttr()
	cmd.SysProcAttr.Setpgid = true
	if g.guard != nil {
		cmd.SysProcAttr.Pgid = g.guard.Process.Pid
	}
	entered, err := g.cgroup.enter(cmd.SysProcAttr)
	if err == nil {
		defer entered()
		err = cmd.Start()
	}
	if err != nil && cmd.Err == nil && g.cgroup != nil && !isShortage(err) { // perhaps it is the cgroup that refuses
		g.cgroup.remove()
		g.cgroup = nil
		return g.start(command)
	}
	g.leader = cmd.Process
	return cmd, err
}

// number returns the number of the group.
func (g *group) number() int {
	if g.guard != nil {
		return g.guard.Process.Pid
	}
	return g.leader.Pid
}

// terminate asks the processes of the group to end. Its guard ignores that.
func (g *group) terminate() { syscall.Kill(-g.number(), syscall.SIGTERM) } //nolint:errcheck // a group that gets no signal has ended

// kill kills the processes of the group. It must not be called after release.
func (g *group) kill() {
	g.cgroup.kill()
	syscall.Kill(-g.number(), syscall.SIGKILL) //nolint:errcheck // as above
	if g.leader.Kill() == nil {                // it is not reaped: its number is its own
		syscall.Kill(-g.leader.Pid, syscall.SIGKILL) //nolint:errcheck // there is such a group only if the server has left its own
	}
}

// release ends what is left of a group that has no server, or whose server was killed and reaped.
func (g *group) release() {
	g.cgroup.remove()
	if g.guard != nil {
		g.guard.Process.Kill() //nolint:errcheck // it may have ended
		g.guard.Wait()         //nolint:errcheck // as above
		g.life.Close()
	}
}
