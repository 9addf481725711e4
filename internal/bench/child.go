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

// childGrace is how long a process may take to end when its stdin is closed.
const childGrace = 5 * time.Second

// child is a process of ours that answers line by line.
type child struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
}

// startChild starts a process. It ends when its stdin is closed, or else is killed.
func startChild(command ...string) (*child, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stderr = os.Stderr
	cmd.WaitDelay = childGrace
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	c := &child{cmd: cmd, in: in, lines: make(chan string, 16)}
	go func() {
		defer close(c.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			c.lines <- scan.Text()
		}
	}()
	return c, nil
}

// ask sends a line, unless it is empty, and returns the next one that comes.
func (c *child) ask(ctx context.Context, line string) (string, error) {
	if line != "" {
		if _, err := fmt.Fprintln(c.in, line); err != nil {
			return "", fmt.Errorf("bench: %w", err)
		}
	}
	select {
	case answer, ok := <-c.lines:
		if !ok {
			return "", fmt.Errorf("bench: %s has ended", c.cmd.Path)
		}
		return strings.TrimSpace(answer), nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// close ends the process.
func (c *child) close() error {
	c.in.Close() //nolint:errcheck // it is the end either way
	kill := time.AfterFunc(childGrace, func() { c.cmd.Process.Kill() })
	defer kill.Stop()
	for range c.lines { // until it closes its stdout
	}
	err := c.cmd.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() < 0 {
		return fmt.Errorf("bench: %s had to be killed", c.cmd.Path)
	}
	return nil
}
