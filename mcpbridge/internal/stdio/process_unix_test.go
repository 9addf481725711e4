//go:build unix

package stdio

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

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
			_, err := startProcess(&c.srv, nil, nil)
			require.ErrorContains(t, err, c.want)
		})
	}
}

func TestStopAsksBeforeItKills(t *testing.T) {
	p, out := start(t, "patient")
	require.Equal(t, "ready", readLine(t, out))
	stopIn(t, p, 5*time.Second) // two for its input, and two for the signal
	require.Equal(t, "was killed by signal: terminated", endOf(p))
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
