package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// process is the process of a member, as the show sees it.
type process struct {
	name  string
	cmd   *exec.Cmd
	in    io.Closer     // has the member leave
	ended chan struct{} // closed when the process has ended
	err   error         // how it has ended
}

// startProcess starts a member, which leaves when its stdin is closed, also because this program has ended.
func startProcess(cfg memberConfig, log io.Writer) (*process, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(cfg)
	if err != nil {
		return nil, err
	}
	p := &process{name: cfg.Name, cmd: exec.Command(exe), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), memberVar+"="+string(text))
	p.cmd.Stderr = log
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		defer close(p.ended)
		p.err = p.cmd.Wait()
	}()
	return p, nil
}

// runs reports whether the process has not ended.
func (p *process) runs() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// kill ends the process at once, also if it is paused, and waits until it has ended.
func (p *process) kill() {
	p.cmd.Process.Kill() //nolint:errcheck // it may have ended already
	<-p.ended
}

// leave makes the member leave the cluster, and ends the process if it does not end by itself.
func (p *process) leave() error {
	p.in.Close() // the process may have ended already
	select {
	case <-p.ended:
	case <-time.After(stopLimit + 5*time.Second):
		p.kill()
	}
	if p.err != nil {
		return fmt.Errorf("member %s: %w", p.name, p.err)
	}
	return nil
}
