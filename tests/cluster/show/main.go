//go:build unix

// Command show shows three processes that share their sessions, while one is killed, one is paused and one leaves. At the
// end it checks the history of all calls, and fails if a guarantee does not hold.
//
//	go -C tests/cluster run ./show
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/mcpactor/mcpactor/internal/freeport"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/tests/cluster/etcdserver"
	"github.com/mcpactor/mcpactor/tests/cluster/history"
	"github.com/mcpactor/mcpactor/tests/cluster/mcpserver"
	"github.com/mcpactor/mcpactor/tests/cluster/member"
)

const (
	// asMember is set in the environment of a process that is a member: the show starts itself as the members.
	asMember = "MCPACTOR_SHOW_MEMBER"
	// lease is how long a member may act after others have confirmed that it is one.
	lease = 2 * time.Second
	// between is the time between two acts.
	between = 2 * time.Second
	// callTimeout is how long each call may take.
	callTimeout = 10 * time.Second
	// reportTime is how long it may take until the show hears what a member knows.
	reportTime = 100 * time.Millisecond
)

func main() {
	run := show
	if os.Getenv(asMember) != "" {
		run = member.Main
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// show runs the servers, the members and the acts until Ctrl-C. If it fails, it keeps the logs of the members.
func show() (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, err := os.MkdirTemp("", "show")
	if err != nil {
		return err
	}
	defer func() {
		if err == nil || ctx.Err() != nil {
			err = errors.Join(ctx.Err(), os.RemoveAll(dir))
			return
		}
		err = fmt.Errorf("%w\nthe logs of the members are in %s", err, dir)
	}()
	etcd, err := etcdserver.New(etcdserver.Config{Dir: filepath.Join(dir, "etcd")})
	if err != nil {
		return err
	}
	if err := etcd.Start(); err != nil {
		return err
	}
	defer etcd.Stop()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := mcpserver.Start(listener)
	defer server.Close() //nolint:errcheck // the sessions that are left were counted
	config := member.Config{Witness: "hosts", Directory: dir, Lease: lease, Shared: true, Etcd: "http://" + etcd.Endpoint(), URL: server.URL()}
	for range 3 {
		address, err := freeport.Addr("127.0.0.1")
		if err != nil {
			return err
		}
		config.Hosts = append(config.Hosts, address)
	}
	c := &cluster{began: time.Now(), dir: dir, config: config, running: map[string]*node{}, history: history.History{Lease: lease, Shared: true}}
	var kill context.CancelFunc
	c.ctx, kill = context.WithCancel(ctx)
	defer func() {
		kill()
		c.members.Wait()
	}()
	if err := c.acts(); err != nil {
		return err
	}
	return c.check(server)
}

// acts shows what happens to the sessions when members come and go. All agents belong to member a, which has no fault.
func (c *cluster) acts() error {
	load := &member.Load{Rate: 100, Timeout: callTimeout, Seed: uint64(c.began.UnixNano())}
	for i := range 24 {
		load.Scopes = append(load.Scopes, fmt.Sprint("agent-", i+1))
	}
	c.note("three processes join a cluster; %d agents of a, each with its own session", len(load.Scopes))
	for i, name := range []string{"a", "b", "c"} {
		if err := c.start(i, name); err != nil {
			return err
		}
	}
	if err := c.awaitMembers(); err != nil {
		return err
	}
	if err := errors.Join(c.send("a", member.Command{Load: load}), c.sleep(between)); err != nil {
		return err
	}
	for _, act := range []func() error{c.killMember, c.joinMember, c.pauseMember, c.leaveMember} {
		if err := errors.Join(act(), c.sleep(between)); err != nil {
			return err
		}
	}
	c.note("the agents finish: each session is called once more, and the members leave")
	last := &member.Load{Scopes: load.Scopes, Timeout: callTimeout}
	return errors.Join(c.quiet("a"), c.send("a", member.Command{Load: last}), c.quiet("a"), c.leave("c"), c.leave("a"))
}

// killMember kills member b.
func (c *cluster) killMember() error {
	c.note("b is killed")
	f := c.history.Begin(history.Kill, "b")
	killed := c.running["b"]
	delete(c.running, "b")
	if err := killed.cmd.Process.Kill(); err != nil {
		return err
	}
	<-killed.ended
	return c.settle(f)
}

// joinMember starts member d on the host of member b.
func (c *cluster) joinMember() error {
	c.note("d starts in the place of b")
	f := c.history.Begin(history.Join, "d")
	if err := c.start(1, "d"); err != nil {
		return err
	}
	return c.settle(f)
}

// pauseMember stops member c until the others have removed it, and longer than its lease.
func (c *cluster) pauseMember() error {
	c.note("c is paused")
	f, paused := c.history.Begin(history.Pause, "c"), c.running["c"]
	if err := paused.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	delete(c.running, "c")
	if err := c.awaitMembers(); err != nil {
		return err
	}
	c.note("the others have removed it after %v", time.Since(f.At).Round(time.Millisecond))
	if err := c.sleep(time.Until(f.At.Add(lease + time.Second))); err != nil {
		return err
	}
	c.note("c runs again: its lease of %v is over, so that it does nothing before it has joined anew", lease)
	f.Until = time.Now()
	c.running["c"] = paused
	if err := paused.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		return err
	}
	if err := c.until("c is a member again", func() bool { return slices.Contains(c.running["a"].knows, "c") }); err != nil {
		return err
	}
	f.Rejoined = time.Now().Add(-reportTime)
	return c.settle(f)
}

// leaveMember makes member d leave. No call may fail because of that.
func (c *cluster) leaveMember() error {
	c.note("d leaves, and hands over its sessions")
	f := c.history.Begin(history.Leave, "d")
	if err := c.leave("d"); err != nil {
		return err
	}
	f.Until = time.Now()
	return c.settle(f)
}

// check prints the report of the history, and returns what does not hold.
func (c *cluster) check(server *mcpserver.Server) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.history.End = time.Now()
	server.Record(&c.history)
	c.history.Sort()
	r := c.history.Report()
	fmt.Printf("\n%v\n", r)
	errs := append(c.errs, c.history.Check())
	if n := server.Live(); n > 0 {
		errs = append(errs, fmt.Errorf("the MCP server still has %d sessions", n))
	}
	if r.Kept < r.Had {
		errs = append(errs, fmt.Errorf("%d of %d sessions have lost their state", r.Had-r.Kept, r.Had))
	}
	for _, call := range c.history.Calls {
		if left := c.history.Faults[len(c.history.Faults)-1].At; call.Code != "" && (call.Code != messages.CodeLost || call.Ended.After(left)) {
			errs = append(errs, fmt.Errorf("a call of %s failed: %s, %s", call.Scope, string(call.Code), call.Detail))
		}
	}
	return errors.Join(errs...)
}
