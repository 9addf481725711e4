//go:build linux

package calls

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// process is a program that the test has started. It ends with the test, even if the test is killed.
type process struct {
	cmd    *exec.Cmd
	exited chan struct{} // closed when it has ended

	writing sync.Mutex // one ask after the other
	in      io.WriteCloser

	mu      sync.Mutex
	waiting map[int]waiting // by the number of the ask; nil when the output has ended
	last    int             // the number of the last ask
}

// waiting is an ask that has no reply.
type waiting struct {
	call  *call
	reply chan told // closed if there will be none
}

// startProcess starts a program. Its stderr is added to a file of its kind in a directory.
func startProcess(dir string, r role) (*process, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(filepath.Join(dir, r.Kind+".log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	p := &process{cmd: exec.Command(os.Args[0]), exited: make(chan struct{}), waiting: map[int]waiting{}}
	p.cmd.Env, p.cmd.Dir, p.cmd.Stderr = append(os.Environ(), roleVar+"="+string(text)), dir, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.read(out)
	return p, nil
}

// read hands out the replies, until there are no more.
func (p *process) read(out io.Reader) {
	defer close(p.exited)
	lines := json.NewDecoder(out)
	for {
		var t told
		if lines.Decode(&t) != nil {
			break // it has ended
		}
		p.mu.Lock()
		if w, known := p.waiting[t.Number]; known {
			delete(p.waiting, t.Number)
			w.reply <- t
		}
		p.mu.Unlock()
	}
	p.mu.Lock()
	for _, w := range p.waiting {
		close(w.reply)
	}
	p.waiting = nil
	p.mu.Unlock()
	p.cmd.Wait() // it was killed
}

// patience bounds the wait for one reply. A program replies after callTimeout.
const patience = 30 * time.Second

var (
	errEnded  = errors.New("the program ended before it replied")
	errSilent = errors.New("the program does not reply")
)

// ask asks for something, and waits for the reply.
func (p *process) ask(c *call, a ask) (told, error) {
	reply := make(chan told, 1)
	p.mu.Lock()
	if p.waiting == nil {
		p.mu.Unlock()
		return told{}, errEnded
	}
	p.last++
	a.Number = p.last
	p.waiting[a.Number] = waiting{c, reply}
	p.mu.Unlock()
	line, err := json.Marshal(a)
	if err != nil {
		return told{}, err
	}
	p.writing.Lock()
	_, err = p.in.Write(append(line, '\n'))
	p.writing.Unlock()
	if err != nil {
		return told{}, errEnded
	}
	select {
	case t, is := <-reply:
		if !is {
			return told{}, errEnded
		}
		return t, nil
	case <-time.After(patience):
		return told{}, errSilent
	}
}

// inFlight returns the calls that wait for a reply.
func (p *process) inFlight() (all []*call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, w := range p.waiting {
		all = append(all, w.call)
	}
	return all
}

// kill ends the process at once, and waits for its end. It returns the calls that were in flight.
func (p *process) kill() []*call {
	all := p.inFlight()
	p.cmd.Process.Kill() // it may have ended
	<-p.exited
	p.in.Close()
	return all
}
