package stdio

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// A write that is still under way when the process ends has put bytes into the
// pipe that are not counted as written yet. They must not be taken for those of
// an earlier message: one that was read may have run.
func TestWhatWasReadIsNeverTakenForUnread(t *testing.T) {
	for range 20 {
		p, out := start(t, "sated")
		const line = "hello\n"
		fmt.Fprint(&p.input, line)
		require.Equal(t, "read it", readLine(t, out))
		written := make(chan error, 1)
		go func() {
			_, err := p.input.Write(make([]byte, 1<<20))
			written <- err
		}()
		require.Eventually(t, func() bool { return pending(p.stdin) == 64<<10 }, 5*time.Second, time.Millisecond)
		p.kill()
		require.False(t, p.neverRead(int64(len(line))))
		require.Error(t, <-written)
		<-p.done
		require.False(t, p.neverRead(int64(len(line))))
		require.True(t, p.neverRead(int64(len(line)+1)))
	}
}

// On a busy machine the reaping takes longer than a caller waits for the end of a process
// that may live on.
func TestEndIsToldThoughReapingTakesItsTime(t *testing.T) {
	p, out := start(t, "sated")
	const read, unread = "hello\n", "again\n"
	fmt.Fprint(&p.input, read)
	require.Equal(t, "read it", readLine(t, out))
	fmt.Fprint(&p.input, unread)
	p.mu.Lock() // the reaping needs it
	time.AfterFunc(2*endWait, p.mu.Unlock)
	require.NoError(t, syscall.Kill(p.cmd.Process.Pid, syscall.SIGKILL))
	<-p.ended
	require.True(t, p.neverRead(int64(len(read+unread))))
	require.False(t, p.neverRead(int64(len(read))))
	require.Equal(t, "was killed by signal: killed", endOf(p))
}

func TestProcessInheritsItsPipesAndNoMore(t *testing.T) {
	// What we were started with ourselves is every child's.
	plain := exec.Command("cat")
	in, err := plain.StdinPipe()
	require.NoError(t, err)
	out, err := plain.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, plain.Start())
	fmt.Fprintln(in, "running")
	require.Equal(t, "running", readLine(t, bufio.NewReader(out)))
	want := descriptors(t, plain.Process.Pid)
	in.Close()
	require.NoError(t, plain.Wait())

	start(t, "echo") // there are its pipes and those of its guard to inherit
	p, lines := startServer(t, &mcpbridge.Server{Command: "cat"})
	fmt.Fprintln(&p.input, "running")
	require.Equal(t, "running", readLine(t, lines))
	require.Equal(t, want, descriptors(t, p.cmd.Process.Pid))
}

func TestNothingIsLeftAfterStop(t *testing.T) {
	round := func() {
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				p, err := startProcess(&mcpbridge.Server{Command: "cat"}, nil, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if err := p.stop(context.Background()); err != nil {
					t.Error(err)
				}
			})
			all.Go(func() { startProcess(&mcpbridge.Server{Command: "/nope"}, nil, nil) })
		}
		all.Wait()
	}
	round() // whatever the runtime opens once
	before := descriptors(t, os.Getpid())
	for range 5 {
		round()
	}
	require.LessOrEqual(t, descriptors(t, os.Getpid()), before)
	lists, err := filepath.Glob("/proc/self/task/*/children")
	require.NoError(t, err)
	require.NotEmpty(t, lists)
	for _, list := range lists {
		children, err := os.ReadFile(list)
		if !errors.Is(err, os.ErrNotExist) && !errors.Is(err, syscall.ESRCH) { // a thread may end
			require.NoError(t, err)
			require.Empty(t, string(children))
		}
	}
}

func descriptors(t *testing.T, pid int) int {
	t.Helper()
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	require.NoError(t, err)
	return len(fds)
}
