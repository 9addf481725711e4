//go:build handles && linux

package handles

import (
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is a program that the test has started. It ends with the test, even if the test is killed.
type process struct {
	cmd  *exec.Cmd
	in   io.Closer
	said chan report // by a platform; closed when its output has ended
}

// startProcess starts a program. Its stderr is added to a file of its kind.
func startProcess(t *testing.T, dir string, r role) *process {
	t.Helper()
	text, err := json.Marshal(r)
	require.NoError(t, err)
	log, err := os.OpenFile(filepath.Join(dir, r.Kind+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	defer log.Close()
	p := &process{cmd: exec.Command(os.Args[0]), said: make(chan report, 1)}
	p.cmd.Env, p.cmd.Dir, p.cmd.Stderr = append(os.Environ(), roleVar+"="+string(text)), dir, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.said)
		var said report
		if json.NewDecoder(out).Decode(&said) == nil {
			p.said <- said
		}
		io.Copy(io.Discard, out) // until it has ended
		p.cmd.Wait()             // it may have been killed
	}()
	t.Cleanup(p.kill)
	return p
}

// kill ends the process at once, unless it has ended, and waits for its end.
func (p *process) kill() {
	p.cmd.Process.Kill() // it may have ended
	p.wait()
}

// end lets the process end by itself, and waits for that.
func (p *process) end(t *testing.T) {
	t.Helper()
	p.in.Close()
	kill := time.AfterFunc(patience, func() { p.cmd.Process.Kill() })
	p.wait()
	require.True(t, kill.Stop(), "the program does not end")
}

func (p *process) wait() {
	for range p.said {
		continue // until its output has ended
	}
	p.in.Close()
}
