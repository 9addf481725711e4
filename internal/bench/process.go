package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// exitGrace is how long a process may take to exit after its stdin is closed.
const exitGrace = 5 * time.Second

// process is a child process that answers each line of its stdin with a line.
type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startProcess starts a command. Its stderr is ours.
func startProcess(command ...string) (*process, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	in, noIn := cmd.StdinPipe()
	out, noOut := cmd.StdoutPipe()
	if err := errors.Join(noIn, noOut, cmd.Start()); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	return &process{cmd, in, bufio.NewReader(out)}, nil
}

// ask writes a line, unless it is empty, and returns the next line of the process. The
// process is killed when ctx ends before.
func (p *process) ask(ctx context.Context, line string) (string, error) {
	defer context.AfterFunc(ctx, p.kill)()
	if line != "" {
		if _, err := fmt.Fprintln(p.in, line); err != nil {
			return "", fmt.Errorf("bench: %s: %w", p.cmd.Path, err)
		}
	}
	answer, err := p.out.ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("bench: %s: %w", p.cmd.Path, errors.Join(err, context.Cause(ctx)))
	}
	return strings.TrimSpace(answer), nil
}

// close closes stdin and waits for the process, which is killed after a grace period.
func (p *process) close() error {
	p.in.Close()
	defer time.AfterFunc(exitGrace, p.kill).Stop()
	io.Copy(io.Discard, p.out) //nolint:errcheck // Wait reports how the process ended
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("bench: %s: %w", p.cmd.Path, err)
	}
	return nil
}

func (p *process) kill() { p.cmd.Process.Kill() } //nolint:errcheck // it may have exited
