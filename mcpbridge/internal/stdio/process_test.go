package stdio

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
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
	p, err := startProcess(srv, nil, nil)
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

func TestStopKillsProcessesThatIgnoreIt(t *testing.T) {
	p, out := start(t, "stubborn parent")
	child := numbers(t, out)[0]
	require.Equal(t, "ready", readLine(t, out)) // the one of the two, or the other
	require.Equal(t, "ready", readLine(t, out))
	began := time.Now()
	stopIn(t, p, time.Second)
	require.GreaterOrEqual(t, time.Since(began), 700*time.Millisecond, "it was not given its time")
	require.Equal(t, killedText, endOf(p))
	requireGone(t, child)
}

func TestStopWithoutTimeKillsAtOnce(t *testing.T) {
	p, out := start(t, "stubborn")
	require.Equal(t, "ready", readLine(t, out))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	within(t, killWait, func() { require.NoError(t, p.stop(ctx)) })
	require.Equal(t, killedText, endOf(p))
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
		"killed":  func(p *process) { p.cmd.Process.Kill() },
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
		p, _ = startProcess(server("echo"), nil, nil)
	}()
	<-done
	require.NotNil(t, p)
	fmt.Fprintln(&p.input, "hello")
	require.Equal(t, "hello", readLine(t, bufio.NewReader(p)))
	stopIn(t, p, 10*time.Second)
	require.Equal(t, "exited with status 0", endOf(p))
}
