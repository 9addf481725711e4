//go:build linux

package stdio

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// owner runs an act that is one of us, and returns how to kill it.
func owner(t *testing.T, act string) (pids []int, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), testProcess+"="+act)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	kill = sync.OnceFunc(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	t.Cleanup(kill)
	pids = numbers(t, bufio.NewReader(out))
	for _, pid := range pids {
		require.True(t, alive(pid))
		t.Cleanup(func() { syscall.Kill(pid, syscall.SIGKILL) })
	}
	return pids, kill
}

func TestNothingOutlivesOurOwnDeath(t *testing.T) {
	pids, kill := owner(t, "owner")
	require.Len(t, pids, 3, "leader, grandchild, watchdog")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		require.NoError(t, syscall.Kill(-pids[2], sig)) // which the watchdog ignores
	}
	kill()
	requireGone(t, pids...)
}

func TestWatchdogSparesWhatWasTakenOffItsList(t *testing.T) {
	pids, kill := owner(t, "watched")
	require.Len(t, pids, 3, "spared, doomed, watchdog")
	kill()
	requireGone(t, pids[1], pids[2])
	require.True(t, alive(pids[0]))
}

func TestWatchdogIsReplacedWhenItWasKilled(t *testing.T) {
	first, _ := start(t, "echo")
	old, _ := watch()
	require.NoError(t, syscall.Kill(old, syscall.SIGKILL))
	requireGone(t, old)
	second, _ := start(t, "echo")
	shell, groups := watch()
	require.NotEqual(t, old, shell)
	require.True(t, alive(shell))
	require.Equal(t, 2, groups)
	stopIn(t, first, 10*time.Second)
	stopIn(t, second, 10*time.Second)
	shell, groups = watch()
	require.Zero(t, shell)
	require.Zero(t, groups)
}

// A list that is out of date may name groups that are somebody else's by now.
func TestWatchdogThatDoesNotReadIsReplacedAndKillsNobody(t *testing.T) {
	own := &syscall.SysProcAttr{Setpgid: true}
	spared := spawn("patient", own)
	defer spared.Wait()
	defer spared.Process.Kill()
	start(t, "echo") // keeps the watchdog up
	watchdog.add(spared.Process.Pid)
	old, _ := watch()
	require.NoError(t, syscall.Kill(old, syscall.SIGSTOP))

	watchdog.mu.Lock()
	watchdog.pipe.SetWriteDeadline(time.Now().Add(100 * time.Millisecond))
	_, err := watchdog.pipe.Write([]byte(strings.Repeat("+\n", 64<<10)))
	watchdog.mu.Unlock()
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)

	within(t, 5*watchdogLimit, func() { watchdog.remove(spared.Process.Pid) })
	shell, groups := watch()
	require.NotEqual(t, old, shell)
	require.Equal(t, 1, groups)
	requireGone(t, old)
	require.True(t, alive(spared.Process.Pid))
}

// watch returns the watchdog's process id, or 0, and how many groups it knows.
func watch() (shell, groups int) {
	watchdog.mu.Lock()
	defer watchdog.mu.Unlock()
	if watchdog.shell != nil {
		shell = watchdog.shell.Process.Pid
	}
	return shell, len(watchdog.groups)
}
