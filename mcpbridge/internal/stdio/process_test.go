//go:build linux

package stdio

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
)

func server(act string) *mcpbridge.Server {
	return &mcpbridge.Server{Name: "test", Command: os.Args[0], Env: map[string]string{
		testProcess: act,
		"GORACE":    "atexit_sleep_ms=0", // else a race build takes a second to exit
	}}
}

// start starts an act, and stops it when the test ends.
func start(t *testing.T, act string) (*process, *bufio.Reader) {
	t.Helper()
	return startServer(t, server(act))
}

func startServer(t *testing.T, srv *mcpbridge.Server) (*process, *bufio.Reader) {
	t.Helper()
	p, err := startProcess(srv, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		p.kill()
		require.NoError(t, p.stop(context.Background()))
	})
	return p, bufio.NewReader(p)
}

// numbers reads a line of process ids.
func numbers(t *testing.T, r *bufio.Reader) []int {
	t.Helper()
	line := readLine(t, r)
	var all []int
	for _, word := range strings.Fields(line) {
		n, err := strconv.Atoi(word)
		require.NoError(t, err, line)
		all = append(all, n)
	}
	return all
}

func readLine(t *testing.T, r *bufio.Reader) string {
	t.Helper()
	line, err := r.ReadString('\n')
	require.NoError(t, err)
	return strings.TrimSpace(line)
}

// alive reports whether a process exists and is no zombie: who adopts ours
// may take his time to reap them.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, state, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(state, "Z") && !strings.HasPrefix(state, "X")
}

func requireGone(t *testing.T, pids ...int) {
	t.Helper()
	for _, pid := range pids {
		require.Eventually(t, func() bool { return !alive(pid) }, 5*time.Second, 5*time.Millisecond, "process %d", pid)
	}
}

// within fails the test if f does not return in time.
func within(t *testing.T, limit time.Duration, f func()) {
	t.Helper()
	began := time.Now()
	f()
	require.Less(t, time.Since(began), limit)
}

// endOf says how a process ended that had nothing to say.
func endOf(p *process) string {
	text, words := p.describeEnd()
	return text + words
}

func stopIn(t *testing.T, p *process, limit time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	within(t, limit+killWait, func() { require.NoError(t, p.stop(ctx)) })
}

func TestProcessTalksAndEndsWithItsInput(t *testing.T) {
	p, out := start(t, "echo")
	fmt.Fprintln(&p.input, "hello")
	require.Equal(t, "hello", readLine(t, out))
	stopIn(t, p, 10*time.Second)
	require.Equal(t, "exited with status 0", endOf(p))
	_, err := out.ReadByte()
	require.Equal(t, io.EOF, err)
	_, err = p.input.Write([]byte("x"))
	require.Error(t, err)
}

func TestProcessRunsWhereAndWithWhatItIsTold(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	t.Setenv("LANG", "inherited")
	t.Setenv("OLD", "secret")
	srv := &mcpbridge.Server{
		Command: "sh", Args: []string{"-c", `echo "$PWD $LANG $OLD $NEW $1"`, "sh", "two words"},
		Env: map[string]string{"NEW": "added"}, Dir: dir,
	}
	_, out := startServer(t, srv)
	require.Equal(t, dir+" inherited  added two words", readLine(t, out))
	srv.InheritEnv = true
	_, out = startServer(t, srv)
	require.Equal(t, dir+" inherited secret added two words", readLine(t, out))
}

func TestProcessThatCannotStartSaysWhy(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	require.NoError(t, os.WriteFile(plain, nil, 0o600))
	for name, c := range map[string]struct {
		srv  mcpbridge.Server
		want string
	}{
		"not in PATH":    {mcpbridge.Server{Command: "nope"}, `exec: "nope": executable file not found in $PATH`},
		"no file":        {mcpbridge.Server{Command: "/nope/nope"}, "fork/exec /nope/nope: no such file or directory"},
		"not executable": {mcpbridge.Server{Command: plain}, "permission denied"},
		"no dir":         {mcpbridge.Server{Command: "cat", Dir: "/nope"}, "working directory: stat /nope: no such file or directory"},
		"dir is a file":  {mcpbridge.Server{Command: "cat", Dir: plain}, plain + " is not a directory"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := startProcess(&c.srv, nil)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestProcessThatDiesLeavesItsLastWords(t *testing.T) {
	srv := server("die")
	srv.Env["TOKEN"] = "hunter22"
	p, out := startServer(t, srv)
	_, err := out.ReadByte()
	require.Equal(t, io.EOF, err)
	<-p.done
	text, words := p.describeEnd()
	require.Equal(t, "exited with status 3", text)
	require.Equal(t, "first words last words of …", words)
}

func TestProcessThatClosesItsOutputLivesOn(t *testing.T) {
	p, out := start(t, "mute")
	_, err := out.ReadByte()
	require.Equal(t, io.EOF, err)
	within(t, 10*endWait, func() { require.Equal(t, "closed its output", endOf(p)) })
}

func TestStopAsksBeforeItKills(t *testing.T) {
	p, out := start(t, "patient")
	require.Equal(t, "ready", readLine(t, out))
	stopIn(t, p, 5*time.Second) // two for its input, and two for the signal
	require.Equal(t, "was killed by signal: terminated", endOf(p))
}

func TestStopKillsProcessesThatIgnoreIt(t *testing.T) {
	p, out := start(t, "stubborn parent")
	child := numbers(t, out)[0]
	require.Equal(t, "ready", readLine(t, out)) // the one of the two, or the other
	require.Equal(t, "ready", readLine(t, out))
	began := time.Now()
	stopIn(t, p, time.Second)
	require.GreaterOrEqual(t, time.Since(began), 700*time.Millisecond, "it was not given its time")
	require.Equal(t, "was killed by signal: killed", endOf(p))
	requireGone(t, child)
}

func TestStopWithoutTimeKillsAtOnce(t *testing.T) {
	p, out := start(t, "stubborn")
	require.Equal(t, "ready", readLine(t, out))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	within(t, killWait, func() { require.NoError(t, p.stop(ctx)) })
	require.Equal(t, "was killed by signal: killed", endOf(p))
}

func TestStopMayBeCalledByManyAndAgain(t *testing.T) {
	p, out := start(t, "stubborn")
	require.Equal(t, "ready", readLine(t, out))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+i)*200*time.Millisecond)
			defer cancel()
			if err := p.stop(ctx); err != nil {
				t.Error(err)
			}
		})
		all.Go(p.kill)
	}
	all.Wait()
	p.kill()
	stopIn(t, p, time.Second)
}

func TestChildrenEndWithTheirLeader(t *testing.T) {
	for name, end := range map[string]func(*process){
		"stopped": func(p *process) { p.stop(context.Background()) },
		"exited":  func(p *process) { p.stdin.Close() },
		"killed":  func(p *process) { syscall.Kill(p.cmd.Process.Pid, syscall.SIGKILL) },
		"kill":    func(p *process) { p.kill() },
	} {
		t.Run(name, func(t *testing.T) {
			p, out := start(t, "parent")
			child := numbers(t, out)[0]
			end(p)
			<-p.done
			requireGone(t, child)
			_, err := io.Copy(io.Discard, out)
			require.NoError(t, err)
		})
	}
}

func TestOutputEndsAlthoughARunawayHoldsIt(t *testing.T) {
	withoutCgroups(t)
	p, out := start(t, "runaway")
	child := numbers(t, out)[0]
	t.Cleanup(func() {
		syscall.Kill(child, syscall.SIGKILL)
		requireGone(t, child)
	})
	<-p.done
	within(t, 10*endWait, func() {
		_, err := io.Copy(io.Discard, out)
		require.NoError(t, err)
	})
	require.True(t, alive(child))
	require.Equal(t, "exited with status 0", endOf(p))
}

func TestStoppedProcessWithAFullPipeBlocksNobody(t *testing.T) {
	for name, end := range map[string]func(*process){
		"stop": func(p *process) {
			ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
			defer cancel()
			p.stop(ctx)
		},
		"kill": func(p *process) { p.kill() },
	} {
		t.Run(name, func(t *testing.T) {
			p, out := start(t, "echo")
			fmt.Fprintln(&p.input, "hello")
			require.Equal(t, "hello", readLine(t, out))
			require.NoError(t, syscall.Kill(p.cmd.Process.Pid, syscall.SIGSTOP))
			written := make(chan error, 1)
			filling := make(chan struct{})
			go func() {
				_, err := p.input.Write(make([]byte, 64<<10)) // fills the pipe
				close(filling)
				if err == nil {
					_, err = p.input.Write(make([]byte, 1<<20)) // more than it read before it stopped
				}
				written <- err
			}()
			<-filling
			within(t, 5*time.Second, func() { end(p) })
			require.Error(t, <-written)
			<-p.done
		})
	}
}

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

func TestFloodOfErrorsBlocksNobody(t *testing.T) {
	p, out := start(t, "flood")
	require.Equal(t, "flooded", readLine(t, out))
	<-p.done
	text, words := p.describeEnd()
	require.Equal(t, "exited with status 1", text)
	require.LessOrEqual(t, len(words), redact.MaxDetail)
	require.True(t, strings.HasPrefix(words, "…x"), words)
	require.True(t, strings.HasSuffix(words, "x the end"), words)
}

func TestProcessOutlivesTheThreadThatAskedForIt(t *testing.T) {
	var p *process
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends
		p, _ = startProcess(server("echo"), nil)
	}()
	<-done
	require.NotNil(t, p)
	fmt.Fprintln(&p.input, "hello")
	require.Equal(t, "hello", readLine(t, bufio.NewReader(p)))
	stopIn(t, p, 10*time.Second)
	require.Equal(t, "exited with status 0", endOf(p))
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
				p, err := startProcess(&mcpbridge.Server{Command: "cat"}, nil)
				if err != nil {
					t.Error(err)
					return
				}
				if err := p.stop(context.Background()); err != nil {
					t.Error(err)
				}
			})
			all.Go(func() { startProcess(&mcpbridge.Server{Command: "/nope"}, nil) })
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
