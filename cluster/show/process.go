package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// process is the process of a member, as the show sees it.
type process struct {
	name  string
	cmd   *exec.Cmd
	in    io.WriteCloser
	ready chan memberAnswer // has one value when the member has joined
	ended chan struct{}     // closed when the process has ended

	mu    sync.Mutex
	lines *json.Encoder
	asked map[string]chan memberAnswer // requests of ask without an answer
	count int
}

// startProcess starts a member. It calls answered for each reply to a call, and gone when
// the process has ended, after the last reply. The process ends when its stdin is closed, also
// because this program has ended.
func startProcess(cfg memberConfig, log io.Writer, answered func(memberAnswer), gone func(*process)) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	p := &process{name: cfg.Name, cmd: exec.Command(exe), ready: make(chan memberAnswer, 1), ended: make(chan struct{}), asked: map[string]chan memberAnswer{}}
	p.cmd.Env = append(os.Environ(), memberVar+"="+string(text))
	p.cmd.Stderr = log
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.lines = json.NewEncoder(p.in)
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		p.read(json.NewDecoder(out), answered)
		p.cmd.Wait() //nolint:errcheck // how it ended, the show knows
		gone(p)
	}()
	return p, nil
}

// read reads answers until the process ends.
func (p *process) read(lines *json.Decoder, answered func(memberAnswer)) {
	for {
		var a memberAnswer
		if lines.Decode(&a) != nil {
			return
		}
		p.mu.Lock()
		asked := p.asked[a.ID]
		delete(p.asked, a.ID)
		p.mu.Unlock()
		switch {
		case a.ID == "":
			p.ready <- a
		case asked != nil:
			asked <- a
		default:
			answered(a)
		}
	}
}

// send sends a request.
func (p *process) send(r memberRequest) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lines.Encode(r)
}

// ask sends a request other than a call, and returns the snapshot of its answer.
func (p *process) ask(ctx context.Context, op string) (*messages.Snapshot, error) {
	box := make(chan memberAnswer, 1)
	p.mu.Lock()
	p.count++
	id := fmt.Sprint("ask-", p.count)
	p.asked[id] = box
	p.mu.Unlock()
	if err := p.send(memberRequest{ID: id, Op: op}); err != nil {
		return nil, err
	}
	select {
	case a := <-box:
		if a.Error != "" {
			return nil, errors.New(a.Error)
		}
		return a.Snapshot, nil
	case <-p.ended:
		return nil, fmt.Errorf("member %s has ended", p.name)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// waitJoined waits until the member has joined, and returns the URL of its page.
func (p *process) waitJoined(ctx context.Context) (page string, err error) {
	select {
	case a := <-p.ready:
		if a.Error != "" {
			return "", fmt.Errorf("member %s: %s", p.name, a.Error)
		}
		return a.Page, nil
	case <-p.ended:
		return "", fmt.Errorf("member %s has ended", p.name)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// kill ends the process at once, also if it is paused, and waits until it has ended.
func (p *process) kill() {
	p.cmd.Process.Kill() //nolint:errcheck // it may have ended already
	<-p.ended
}

// leave makes the member leave the cluster, and ends the process if it does not end by itself.
func (p *process) leave() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopLimit+2*time.Second)
	defer cancel()
	_, err := p.ask(ctx, "leave")
	select {
	case <-p.ended:
	case <-time.After(5 * time.Second):
		p.kill()
		err = errors.Join(err, fmt.Errorf("member %s did not end", p.name))
	}
	return err
}
