package stdio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/stderr"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/tap"
)

const (
	// stopDefault is how long stop may take if its context has no deadline.
	stopDefault = 5 * time.Second
	// killWait is how long stop waits at least until SIGKILL takes effect.
	killWait = time.Second
	// endWait is how long other processes may hold the output of a process open after its end. It
	// is also how long describeEnd waits for the end.
	endWait = 250 * time.Millisecond
	// reapLimit is how long describeEnd waits for the reaping of a process that has
	// ended. This can take long on a busy machine.
	reapLimit = 2 * time.Second
)

// process is a stdio server: a leader and its children, in a [group] of their own, which ends with its leader, and with this
// process.
//
//	startProcess → running → leader ends → group killed → group reaped → leader reaped → done
//
// All methods may be called from any goroutine.
type process struct {
	config *mcpbridge.Server
	group  *group
	after  *cleanup  // nil without [mcpbridge.Server.Cleanup]
	cmd    *exec.Cmd // its ProcessState is set before done is closed

	// These are the bridge's ends of the pipes. They do not belong to exec.Cmd, whose Wait
	// would wait for each grandchild that holds one.
	stdin, stdout, stderr *os.File

	input tap.Input // to stdin
	// unread is how much of the input was still in the pipe when the process had
	// ended; -1 if that is unknown. It is set before done is closed.
	unread int64

	tail    tail
	lines   *stderr.Writer // of stderr, and of the text on stdout; or nil
	text    lines          // of the text on stdout
	drained chan struct{}  // closed when stderr is read to its end
	ended   chan struct{}  // closed when the leader has ended
	done    chan struct{}  // closed when the group is killed and the leader reaped

	mu     sync.Mutex
	reaped bool // the numbers of the group and of the leader may now belong to others
}

// startProcess starts the command of a configuration. The caller must call stop in the end,
// also if the process ends by itself. after and open, which opens the writer of its stderr, may be nil.
func startProcess(config *mcpbridge.Server, after *cleanup, open func() *stderr.Writer) (*process, error) {
	if err := checkDir(config.Dir); err != nil {
		return nil, err
	}
	p := &process{config: config, after: after, drained: make(chan struct{}), ended: make(chan struct{}), done: make(chan struct{})}
	theirs, err := p.pipes()
	if err == nil {
		started := make(chan error)
		go p.run(theirs, started)
		err = <-started
	}
	for _, f := range theirs {
		f.Close()
	}
	if err != nil {
		p.closePipes()
		return nil, err
	}
	if open != nil {
		p.lines = open()
	}
	p.text = lines{to: p.lines, config: config}
	go func() {
		defer close(p.drained)
		p.tail.drain(p.stderr, &lines{to: p.lines, config: config})
	}()
	return p, nil
}

// checkDir returns an error for a working directory that does not exist. The error of cmd.Start would name the command.
func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", dir)
	}
	if err != nil {
		return fmt.Errorf("working directory: %w", err)
	}
	return nil
}

// pipes makes the pipes, and returns the ends for the process: its input, its output and its stderr.
func (p *process) pipes() (theirs []*os.File, err error) {
	pipe := func() (r, w *os.File) {
		if err == nil {
			r, w, err = os.Pipe()
		}
		return r, w
	}
	in, stdin := pipe()
	stdout, out := pipe()
	stderr, errs := pipe()
	p.stdin, p.stdout, p.stderr = stdin, stdout, stderr
	p.input.Writer = stdin
	return []*os.File{in, out, errs}, err
}

// run starts the process and waits for its end. On Linux the kernel kills the
// leader when the thread that started it ends, so the thread has to stay.
func (p *process) run(theirs []*os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.start(theirs)
	started <- err
	if err != nil {
		return
	}
	p.group.awaitExit(p.cmd)
	close(p.ended)
	p.kill()
	p.group.reap()
	p.reap()
	p.unread = unread(p.stdin)
	time.AfterFunc(endWait, func() {
		p.closePipes() // a child outside the group may hold them open
		<-p.drained
		p.lines.Close()
	})
	close(p.done)
	p.after.begin()
}

// start starts the leader in a new group. A command that cannot be found gets no group.
func (p *process) start(theirs []*os.File) (err error) {
	command := func() *exec.Cmd {
		cmd := exec.Command(p.config.Command, p.after.fill(p.config.Args)...)
		cmd.Dir = p.config.Dir
		cmd.Env = environment(p.config, os.Environ())
		cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
		return cmd
	}
	if err := command().Err; err != nil {
		return err
	}
	if p.group, err = newGroup(); err != nil {
		return err
	}
	p.cmd, err = p.group.start(command)
	if err != nil {
		p.group.release()
	}
	return err
}

func (p *process) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cmd.Wait() //nolint:errcheck // it is in ProcessState, also when awaitExit has called it
	p.group.release()
	p.reaped = true
}

// Read reads the output of the process. It returns [io.EOF] soon after the
// leader has ended, even if others hold the pipe open, and after stop.
func (p *process) Read(b []byte) (int, error) {
	n, err := p.stdout.Read(b)
	if errors.Is(err, os.ErrClosed) {
		err = io.EOF
	}
	return n, err
}

// said notes text that the process wrote to stdout. One goroutine calls it.
func (p *process) said(text []byte) {
	if !bytes.HasSuffix(text, []byte("\n")) {
		text = append(bytes.Clone(text), '\n')
	}
	p.tail.write(text)
	p.text.write(text)
}

// Close makes this Read and later ones return. It closes no pipe, because stop closes them in the right order.
func (p *process) Close() error {
	if p.stdout.SetReadDeadline(time.Unix(0, 0)) != nil { // pipes have no deadlines here
		p.kill()
	}
	return nil
}

// hasRead reports whether the process has read all of its input so far. It returns true if that is not known.
func (p *process) hasRead() bool { return pending(p.stdin) == 0 }

// neverRead reports whether the process has ended without reading its input
// up to the given offset. It waits for the end as isOver does.
func (p *process) neverRead(offset int64) bool {
	return p.isOver() && p.unread >= 0 && offset > p.input.Written()-p.unread
}

// endedAfterReading reports whether the process has ended, and had read some of its input, or may have. It waits for the end
// as isOver does.
func (p *process) endedAfterReading() bool {
	return p.isOver() && p.unread < p.input.Written()
}

// isOver waits up to endWait for the end of the process, and reports whether it has ended and was reaped.
func (p *process) isOver() bool {
	select {
	case <-p.ended:
		return p.ends(context.Background(), reapLimit)
	case <-time.After(endWait):
		return isClosed(p.done)
	}
}

// kill kills the group. It does not block.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		p.group.kill()
	}
}

// terminate asks the group to end, where there is a way to ask.
func (p *process) terminate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		p.group.terminate()
	}
}

// stop ends the process: it closes the input, then asks the process to end, then kills it. Each step gets
// a share of the time until the deadline of ctx, see timeToEnd. When ctx ends, stop kills at
// once. It returns nil if the leader has ended, the group was killed, and the cleanup has succeeded. Otherwise it
// may be called again.
func (p *process) stop(ctx context.Context) error {
	if err := p.end(ctx); err != nil {
		return err
	}
	return p.after.wait(ctx)
}

func (p *process) end(ctx context.Context) error {
	defer p.closePipes()
	left := p.timeToEnd(ctx)
	p.stdin.Close()
	if p.ends(ctx, left*2/5) {
		return nil
	}
	p.terminate()
	if p.ends(ctx, left*2/5) {
		return nil
	}
	p.kill()
	// The kill needs time, even if ctx has ended.
	if p.ends(context.WithoutCancel(ctx), max(left/5, killWait)) {
		return nil
	}
	return fmt.Errorf("process %d was killed and did not end", p.cmd.Process.Pid)
}

// timeToEnd returns how long the steps of stop may take together. Half of the time is for the cleanup, if there is one: to
// remove a container whose monitor was killed, podman needs up to two seconds.
func (p *process) timeToEnd(ctx context.Context) time.Duration {
	left := stopDefault
	if deadline, ok := ctx.Deadline(); ok {
		left = time.Until(deadline)
	}
	if p.after != nil {
		left /= 2
	}
	return left
}

// ends waits for the end of the process, and reports whether it came.
func (p *process) ends(ctx context.Context, limit time.Duration) bool {
	select {
	case <-p.done:
	case <-ctx.Done():
	case <-time.After(limit):
	}
	return isClosed(p.done)
}

// closePipes closes the pipes, so that reads and writes return.
func (p *process) closePipes() {
	p.stdin.Close()
	p.stdout.Close()
	p.stderr.Close()
}

// describeEnd returns how the process ended, and its last output. It waits for the end as isOver does, because the pipes
// break before the process has ended.
func (p *process) describeEnd() (detail, quote string) {
	detail, limit := "closed its output", time.Duration(0)
	if p.isOver() {
		detail, limit = exitText(p.cmd.ProcessState), endWait
	}
	select {
	case <-p.drained:
	case <-time.After(limit):
	}
	return detail, p.tail.last(redact.MaxDetail-len("…"), redact.OfServer(p.config)...)
}

func exitText(state *os.ProcessState) string {
	switch {
	case state == nil:
		return "ended" // other code of this process has reaped it
	case state.ExitCode() < 0:
		return "was killed by " + state.String()
	}
	return fmt.Sprintf("exited with status %d", state.ExitCode())
}
