package stdio

import (
	"bufio"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// kills is how often a program that starts servers is killed.
var kills = flag.Int("stdio.kills", 20, "kill a program that starts servers so many times")

// owner runs an act that is one of us, and returns the process ids that it prints, and how to kill it.
func owner(t *testing.T, act string) (program *exec.Cmd, pids []int, kill func()) {
	t.Helper()
	program = exec.Command(programFor(t))
	program.Env = append(os.Environ(), testProcess+"="+act)
	program.SysProcAttr = ownerAttr()
	out, err := program.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, program.Start())
	kill = sync.OnceFunc(func() {
		program.Process.Kill()
		program.Wait()
	})
	t.Cleanup(kill)
	return program, numbers(t, bufio.NewReader(out)), kill
}

// requireNothingLeft waits until nothing is left of what a program has started, which has ended.
func requireNothingLeft(t *testing.T, program *exec.Cmd) {
	t.Helper()
	var left []int
	require.Eventually(t, func() bool {
		left = leftOf(t, program)
		return len(left) == 0
	}, 10*time.Second, 5*time.Millisecond, "%v", &left)
}

func TestNothingOutlivesOurOwnDeath(t *testing.T) {
	program, pids, kill := owner(t, "owner")
	require.Len(t, pids, 2, "leader, grandchild")
	for _, pid := range pids {
		require.True(t, alive(pid))
	}
	kill()
	requireGone(t, pids...)
	requireNothingLeft(t, program)
}

// The start is when a server may have children that nobody knows of.
func TestNothingOutlivesOurDeathAtTheStart(t *testing.T) {
	for _, act := range starters {
		t.Run(act, func(t *testing.T) {
			for range *kills {
				program, _, kill := owner(t, act)
				<-time.After(rand.N(20 * time.Millisecond))
				kill()
				requireNothingLeft(t, program)
			}
		})
	}
}
