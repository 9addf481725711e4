//go:build !unix && !windows

package stdio

import (
	"os"
	"os/exec"
)

// group is one server: there are no groups of processes here. Children of a server that do not end with its input remain,
// and so does the server itself when this process is killed.
type group struct{ leader *os.Process }

func newGroup() (*group, error) { return new(group), nil }

func (g *group) start(command func() *exec.Cmd) (*exec.Cmd, error) {
	cmd := command()
	err := cmd.Start()
	g.leader = cmd.Process
	return cmd, err
}

func (g *group) awaitExit(cmd *exec.Cmd) {
	cmd.Wait() //nolint:errcheck // it is in ProcessState
}

func (g *group) terminate() { g.kill() }

func (g *group) kill() {
	g.leader.Kill() //nolint:errcheck // it may have ended
}

func (g *group) reap()    {}
func (g *group) release() {}
