//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/mcpactor/mcpactor/tests/cluster/history"
	"github.com/mcpactor/mcpactor/tests/cluster/member"
)

const (
	// patience bounds each wait for something that must happen.
	patience = 40 * time.Second
	// lookTime is how often the show looks whether it has happened.
	lookTime = 10 * time.Millisecond
)

// cluster is the members, and what has happened.
type cluster struct {
	ctx     context.Context // of the members: at its end, they are killed
	members sync.WaitGroup  // the processes that have not ended
	began   time.Time
	dir     string
	config  member.Config    // of all members, without what is one's own
	running map[string]*node // those that neither have ended nor are paused, by name

	mu      sync.Mutex
	history history.History // the reports of the members are added under mu
	errs    []error
}

// node is the process of a member.
type node struct {
	cmd   *exec.Cmd
	in    *json.Encoder
	ended chan struct{} // closed when the process has ended
	err   error         // how it has ended; set before ended is closed

	knows []string      // the members that it knows; under the mu of the cluster
	quiet *member.Quiet // likewise
}

// note prints a line.
func (c *cluster) note(format string, args ...any) {
	fmt.Printf("%6.2fs  %s\n", time.Since(c.began).Seconds(), fmt.Sprintf(format, args...))
}

// start starts the process of a member, on one of the hosts. It ends with this process.
func (c *cluster) start(host int, name string) error {
	exe, err := os.Executable()
	if err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(c.dir, name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	n := &node{cmd: exec.CommandContext(c.ctx, exe), ended: make(chan struct{})}
	n.cmd.Env, n.cmd.Stderr = append(os.Environ(), asMember+"=1"), log
	in, err1 := n.cmd.StdinPipe()
	out, err2 := n.cmd.StdoutPipe()
	if err := errors.Join(err1, err2, n.cmd.Start()); err != nil {
		return err
	}
	n.in = json.NewEncoder(in)
	c.members.Go(func() {
		defer close(n.ended)
		c.read(n, name, out)
		n.err = n.cmd.Wait()
	})
	c.running[name] = n
	own := c.config
	own.Name, own.Listen, own.Advertise = name, own.Hosts[host], own.Hosts[host]
	return n.in.Encode(own)
}

// read records the reports of a process.
func (c *cluster) read(n *node, name string, out io.Reader) {
	for in := json.NewDecoder(out); ; {
		var r member.Report
		if in.Decode(&r) != nil { // it may have been killed while it wrote
			return
		}
		c.mu.Lock()
		r.Record(&c.history, name)
		switch {
		case r.View != nil:
			n.knows = r.View.Members
		case r.Quiet != nil:
			n.quiet = r.Quiet
		case r.Error != "":
			c.errs = append(c.errs, fmt.Errorf("%s: %s", name, r.Error))
		}
		c.mu.Unlock()
	}
}

// send sends a command to a member.
func (c *cluster) send(name string, command member.Command) error {
	return c.running[name].in.Encode(command)
}

// quiet ends the agents of a member, and waits until all calls are answered.
func (c *cluster) quiet(name string) error {
	n := c.running[name]
	if err := c.send(name, member.Command{Quiet: true}); err != nil {
		return err
	}
	return c.until("all calls are answered", func() bool {
		answered := n.quiet != nil
		n.quiet = nil
		return answered
	})
}

// leave makes a member leave the cluster, and waits until its process has ended.
func (c *cluster) leave(name string) error {
	n := c.running[name]
	delete(c.running, name)
	if err := n.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	select {
	case <-n.ended:
	case <-time.After(patience):
		return fmt.Errorf("%s does not end", name)
	}
	if n.err == nil && n.quiet.Leaks != "" {
		return errors.New(n.quiet.Leaks)
	}
	return n.err
}

// settle waits until all members know each other after a fault.
func (c *cluster) settle(f *history.Fault) error {
	if err := c.awaitMembers(); err != nil {
		return err
	}
	f.Settled = time.Now()
	return nil
}

// awaitMembers waits until all processes know each other, and nobody else.
func (c *cluster) awaitMembers() error {
	want := slices.Sorted(maps.Keys(c.running))
	return c.until(fmt.Sprint("the members are ", want), func() bool {
		for _, n := range c.running {
			if !slices.Equal(n.knows, want) {
				return false
			}
		}
		return true
	})
}

// until waits until something holds, which is asked under mu.
func (c *cluster) until(what string, holds func() bool) error {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		c.mu.Lock()
		held, err := holds(), errors.Join(c.errs...)
		c.mu.Unlock()
		if held || err != nil {
			return err
		}
		if err := c.sleep(lookTime); err != nil {
			return err
		}
	}
	return fmt.Errorf("%v were not enough until %s", patience, what)
}

// sleep waits for a time. It returns an error if the show is interrupted.
func (c *cluster) sleep(d time.Duration) error {
	select {
	case <-c.ctx.Done():
		return c.ctx.Err()
	case <-time.After(d):
		return nil
	}
}
