package stdio

import (
	"context"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// adopting makes orphans of our children our own for a test, as for PID 1.
func adopting(t *testing.T) {
	t.Helper()
	require.False(t, adopts())
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	t.Cleanup(func() { require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)) })
	require.True(t, adopts())
}

// exists reports whether there is a process, a zombie included.
func exists(pid int) bool { return syscall.Kill(pid, 0) == nil }

// H-E8: descendants of a server that end with it are reaped.
func TestChildrenOfAServerAreReapedWithIt(t *testing.T) {
	adopting(t)
	for name, end := range map[string]func(*process){
		"stopped": func(p *process) { p.stop(context.Background()) },
		"killed":  func(p *process) { syscall.Kill(p.cmd.Process.Pid, syscall.SIGKILL) },
	} {
		t.Run(name, func(t *testing.T) {
			p, out := startServer(t, &mcpbridge.Server{Command: "sh", Args: []string{"-c", `sh -c 'echo $$; sleep 60 & echo $!; wait' & cat >/dev/null`}})
			child, grandchild := numbers(t, out)[0], numbers(t, out)[0]
			end(p)
			<-p.done
			require.False(t, exists(child))
			require.False(t, exists(grandchild))
		})
	}
}

// H-E8: processes that a child of a server has left are reaped while the server runs.
func TestOrphansAreReapedWhileTheirServerRuns(t *testing.T) {
	adopting(t)
	p, out := startServer(t, &mcpbridge.Server{Command: "sh", Args: []string{"-c", `(sleep 0.01 & echo $!); cat`}})
	orphan := numbers(t, out)[0]
	require.Eventually(t, func() bool { return !exists(orphan) }, 5*time.Second, 5*time.Millisecond)
	require.True(t, alive(p.cmd.Process.Pid))
}

// H-E8: other children of the program are not reaped.
func TestChildrenOfOthersAreNotReaped(t *testing.T) {
	adopting(t)
	var others []*exec.Cmd
	for _, attr := range []*syscall.SysProcAttr{nil, {Setpgid: true}, {Setsid: true}} {
		other := exec.Command("sh", "-c", "exit 7")
		other.SysProcAttr = attr
		require.NoError(t, other.Start())
		require.NoError(t, unix.Waitid(unix.P_PID, other.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)) // which leaves it to be reaped
		others = append(others, other)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			p, err := startProcess(&mcpbridge.Server{Command: "sh", Args: []string{"-c", `sleep 60 & sleep 60`}}, nil, nil)
			if err != nil {
				t.Error(err)
				return
			}
			orphans.run() // as its timer does
			p.kill()
			if err := p.stop(context.Background()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, other := range others {
		var exit *exec.ExitError
		require.ErrorAs(t, other.Wait(), &exit)
		require.Equal(t, 7, exit.ExitCode())
	}
}
