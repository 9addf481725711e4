//go:build unix && !linux

package stdio

import (
	"os/exec"
	"syscall"
)

// serverAttr returns the attributes of a server.
func serverAttr() *syscall.SysProcAttr { return new(syscall.SysProcAttr) }

// awaitExit waits for the end of the server, and reaps it.
func (g *group) awaitExit(cmd *exec.Cmd) {
	cmd.Wait() //nolint:errcheck // it is in ProcessState
}

// reap does nothing: this process does not become the parent of orphans.
func (g *group) reap() {}

// cgroup is always nil: there are no cgroups here.
type cgroup struct{}

func newCgroup() *cgroup     { return nil }
func (*cgroup) path() string { return "" }
func (*cgroup) kill()        {}
func (*cgroup) remove()      {}

func (*cgroup) enter(*syscall.SysProcAttr) (done func(), err error) { return func() {}, nil }
