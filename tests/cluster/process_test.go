//go:build linux

package cluster_test

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds every wait for something that must happen.
const patience = 40 * time.Second

// process is a process that the test has started. It ends with the test, even if the test
// is killed.
type process struct {
	t      *testing.T
	name   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	log    string        // the file of its stderr
	read   chan struct{} // closed by its reader at the end of stdout
	exited chan struct{} // closed when it has ended
}

// startProcess starts a program in a directory, which gets its log, and in a namespace if there is one. read is called
// with its output, and returns at the end of it.
func startProcess(t *testing.T, in *namespace, dir, name string, read func(io.Reader), path string, args ...string) *process {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, name+".log"))
	require.NoError(t, err)
	defer log.Close()
	p := &process{t: t, name: name, cmd: exec.Command(path, args...), log: log.Name(), read: make(chan struct{}), exited: make(chan struct{})}
	p.cmd.Dir, p.cmd.Stderr = dir, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	p.out, err = p.cmd.StdoutPipe()
	require.NoError(t, err)
	start := p.cmd.Start
	if in != nil {
		start = func() error { return in.do(p.cmd.Start) }
	}
	require.NoError(t, start())
	go func() {
		defer close(p.read)
		read(p.out)
	}()
	go func() {
		defer close(p.exited)
		<-p.read
		p.cmd.Wait() // whoever waits looks at the state
	}()
	t.Cleanup(p.kill)
	return p
}

// signal sends a signal.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(s), p.name)
}

// pause stops the process until resume is called.
func (p *process) pause() (resume func()) {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	return func() { p.signal(syscall.SIGCONT) }
}

// kill ends the process at once, and waits for its end.
func (p *process) kill() {
	p.cmd.Process.Kill() // it may have ended
	<-p.exited
	p.in.Close()
}

// wait waits for the end of the process, which must exit with status 0.
func (p *process) wait() {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(patience):
		require.Fail(p.t, "a process does not end", "%s\n%s", p.name, p.tail())
	}
	p.in.Close()
	require.True(p.t, p.cmd.ProcessState.Success(), "%s: %v\n%s", p.name, p.cmd.ProcessState, p.tail())
}

// tail returns the end of the log.
func (p *process) tail() string {
	const lines = 12
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(text, []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

// until waits until a condition holds, and fails the test if it does not.
func until(t *testing.T, holds func() bool, why func() string) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); {
		if time.Now().After(end) {
			require.Fail(t, "it does not happen", why())
		}
		<-time.After(5 * time.Millisecond)
	}
}

// dirOf returns the directory for the logs of a test.
func dirOf(t *testing.T) string {
	t.Helper()
	if *logs == "" {
		return t.TempDir()
	}
	dir, err := filepath.Abs(filepath.Join(*logs, t.Name(), fmt.Sprint(time.Now().Unix())))
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(dir, 0o700))
	return dir
}
