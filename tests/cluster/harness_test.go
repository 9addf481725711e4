//go:build linux

package cluster_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/internal/freeport"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/tests/cluster/history"
	"github.com/mcpactor/mcpactor/tests/cluster/mcpserver"
	"github.com/mcpactor/mcpactor/tests/cluster/member"
	"github.com/mcpactor/mcpactor/tests/cluster/network"
)

const (
	// size is the number of members.
	size = 3
	// lease is the lease of each member.
	lease = 2 * time.Second
)

// setting is what a scenario runs on.
type setting struct {
	witness string
	shared  bool // the members share a store of sessions
	proxied bool // the network between the members can be cut
	tls     bool // the members have certificates
}

// cluster is a cluster of processes, with the MCP server and perhaps etcd.
type cluster struct {
	setting
	t       *testing.T
	dir     string
	server  *mcpserver.Server
	etcd    *etcd // nil if it is not needed
	network *network.Network
	pem     *pemFiles // nil without TLS
	slots   [size]slot
	load    *member.Load // of all members and of those that join, or nil

	mu      sync.Mutex
	history history.History
	errs    []error
}

// slot is the place of a member, which one process after the other takes.
type slot struct {
	listen, advertise string
	serial            int
	running           *node // nil if there is none
}

// node is the process of a member.
type node struct {
	*process
	name string

	// Below: under the lock of the cluster.

	views []*member.View
	quiet *member.Quiet
	calls int // that were reported
}

// knows returns the members that a process knows.
func (n *node) knows() []string {
	if len(n.views) == 0 {
		return nil
	}
	return n.views[len(n.views)-1].Members
}

// start starts the members, and waits until they know each other.
func start(t *testing.T, s setting) *cluster {
	t.Helper()
	leaks := goleak.IgnoreCurrent()
	c := &cluster{setting: s, t: t, dir: dirOf(t), network: network.New(), history: history.History{Shared: s.shared, Lease: lease}}
	var err error
	c.server, err = mcpserver.Start()
	require.NoError(t, err)
	t.Cleanup(func() { // after the processes have ended
		require.NoError(t, c.server.Close())
		require.NoError(t, goleak.Find(leaks))
	})
	if s.witness == "etcd" || s.shared {
		c.etcd = startEtcd(t, c.dir)
		if s.proxied {
			c.etcd.endpoint = c.proxy("etcd", c.etcd.endpoint)
		}
	}
	if s.tls {
		c.pem = newPEMFiles(t, c.dir)
	}
	for i := range c.slots {
		one := &c.slots[i]
		one.listen = freeAddr(t)
		one.advertise = one.listen
		if s.proxied {
			one.advertise = c.proxy(slotName(i), one.listen)
		}
	}
	for i := range c.slots {
		c.run(i)
	}
	c.awaitMembers()
	return c
}

// proxy starts a proxy, and returns its address.
func (c *cluster) proxy(name, to string) string {
	p, err := c.network.Listen(name, to)
	require.NoError(c.t, err)
	c.t.Cleanup(p.Close)
	return p.Addr()
}

// slotName is the name of a place in the network.
func slotName(i int) string { return fmt.Sprint("m", i+1) }

// freeAddr returns an address with a port that nobody listens on.
func freeAddr(t *testing.T) string {
	t.Helper()
	addr, err := freeport.Addr("127.0.0.1")
	require.NoError(t, err)
	return addr
}

// run starts the process of a place, with the load that the others have.
func (c *cluster) run(i int) *node {
	c.t.Helper()
	s := &c.slots[i]
	s.serial++
	cfg := member.Config{
		Name: fmt.Sprintf("%s.%d", slotName(i), s.serial), Witness: c.witness, Listen: s.listen, Advertise: s.advertise,
		Directory: c.dir, Shared: c.shared, URL: c.server.URL(), Lease: lease,
	}
	for _, other := range c.slots {
		cfg.Hosts = append(cfg.Hosts, other.advertise)
	}
	if c.etcd != nil {
		cfg.Etcd = "http://" + c.etcd.endpoint
	}
	if c.pem != nil {
		cfg.Certificate, cfg.Key, cfg.CA = c.pem.certificate, c.pem.key, c.pem.authority
	}
	n := &node{name: cfg.Name}
	n.process = startProcess(c.t, c.dir, n.name, func(out io.Reader) { c.read(n, out) }, program("member"))
	c.network.Name(n.cmd.Process.Pid, slotName(i))
	s.running = n
	c.send(n, cfg)
	if c.load != nil {
		c.send(n, member.Command{Load: c.load})
	}
	return n
}

// send sends a configuration or a command to a process.
func (c *cluster) send(n *node, value any) {
	c.t.Helper()
	require.NoError(c.t, json.NewEncoder(n.in).Encode(value), "%s\n%s", n.name, n.tail())
}

// read records the reports of a process.
func (c *cluster) read(n *node, out io.Reader) {
	in := json.NewDecoder(bufio.NewReader(out))
	for {
		var r member.Report
		if err := in.Decode(&r); err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) { // it may have been killed while it wrote
				c.record(func() { c.errs = append(c.errs, fmt.Errorf("%s: %w", n.name, err)) })
			}
			io.Copy(io.Discard, out) // it is of no use
			return
		}
		c.record(func() {
			switch {
			case r.Call != nil:
				n.calls++
				c.history.Calls = append(c.history.Calls, r.Call)
			case r.View != nil:
				n.views = append(n.views, r.View)
			case r.Quiet != nil:
				n.quiet = r.Quiet
			default:
				c.errs = append(c.errs, fmt.Errorf("%s: %s", n.name, r.Error))
			}
		})
	}
}

func (c *cluster) record(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f()
}

// running returns the processes that run.
func (c *cluster) running() (all []*node) {
	for _, s := range c.slots {
		if s.running != nil {
			all = append(all, s.running)
		}
	}
	return all
}

// awaitMembers waits until all processes know each other, and nobody else.
func (c *cluster) awaitMembers() {
	c.t.Helper()
	c.awaitViews(c.running(), c.running())
}

// awaitViews waits until some processes know exactly the given members.
func (c *cluster) awaitViews(of, members []*node) {
	c.t.Helper()
	var want []string
	for _, n := range members {
		want = append(want, n.name)
	}
	slices.Sort(want)
	until(c.t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return !slices.ContainsFunc(of, func(n *node) bool { return !slices.Equal(n.knows(), want) })
	}, func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		text := fmt.Sprintf("members %v are expected", want)
		for _, n := range of {
			text += fmt.Sprintf("\n%s knows %v\n%s", n.name, n.knows(), n.tail())
		}
		return text
	})
}

// start runs the agents of all members.
func (c *cluster) start(l member.Load) {
	c.t.Helper()
	c.load = &l
	if l.Rate == 0 {
		c.load = nil
	}
	for i, n := range c.running() {
		its := l
		its.Seed += uint64(i)
		c.send(n, member.Command{Load: &its})
	}
}

// quiet ends the agents, and waits until all calls are answered.
func (c *cluster) quiet() {
	c.t.Helper()
	c.load = nil
	for _, n := range c.running() {
		c.record(func() { n.quiet = nil })
		c.send(n, member.Command{Quiet: true})
	}
	for _, n := range c.running() {
		c.awaitQuiet(n)
	}
}

// awaitQuiet waits until a process has reported all calls of its agents.
func (c *cluster) awaitQuiet(n *node) {
	c.t.Helper()
	until(c.t, func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return n.quiet != nil
	}, func() string { return n.name + "\n" + n.tail() })
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Equal(c.t, n.quiet.Calls, n.calls, "%s did not report each call", n.name)
	if n.quiet.Leaks != "" {
		c.errs = append(c.errs, fmt.Errorf("%s has left goroutines: %s", n.name, n.quiet.Leaks))
	}
}

// fault records the beginning of a fault.
func (c *cluster) fault(kind history.Kind, member string) *history.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	f := &history.Fault{Kind: kind, Member: member, At: now, Until: now}
	c.history.Faults = append(c.history.Faults, f)
	return f
}

// settled records that all members know each other after a fault.
func (c *cluster) settled(f *history.Fault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f.Settled = time.Now()
}

// kill kills the process of a place.
func (c *cluster) kill(i int) {
	c.t.Helper()
	n := c.slots[i].running
	c.slots[i].running = nil
	f := c.fault(history.Kill, n.name)
	n.kill()
	c.awaitMembers()
	c.settled(f)
}

// leave makes the process of a place leave the cluster and exit.
func (c *cluster) leave(i int) {
	c.t.Helper()
	n := c.slots[i].running
	c.slots[i].running = nil
	f := c.fault(history.Leave, n.name)
	c.exit(n)
	c.record(func() { f.Until = time.Now() })
	c.awaitMembers()
	c.settled(f)
}

// exit makes a process leave, and waits until it has exited.
func (c *cluster) exit(n *node) {
	c.t.Helper()
	c.record(func() { n.quiet = nil })
	n.signal(syscall.SIGTERM)
	n.wait()
	c.awaitQuiet(n)
}

// join starts a new process in a place.
func (c *cluster) join(i int) {
	c.t.Helper()
	f := c.fault(history.Join, "")
	n := c.run(i)
	c.record(func() { f.Member = n.name })
	c.awaitMembers()
	c.settled(f)
}

// pause stops the process of a place for some time, and reports whether the others removed
// it meanwhile.
func (c *cluster) pause(i int, d time.Duration) (removed bool) {
	c.t.Helper()
	n := c.slots[i].running
	f := c.fault(history.Pause, n.name)
	n.signal(syscall.SIGSTOP)
	<-time.After(d)
	removed = c.without(n)
	c.record(func() { f.Until = time.Now() })
	n.signal(syscall.SIGCONT)
	c.awaitMembers()
	c.settled(f)
	if removed {
		f.Rejoined = c.rejoined(n, f.Until)
	}
	return removed
}

// without reports whether all other members have removed a member.
func (c *cluster) without(n *node) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.running() {
		if other != n && slices.Contains(other.knows(), n.name) {
			return false
		}
	}
	return true
}

// rejoined returns a time before the first of the others knew a member again.
func (c *cluster) rejoined(n *node, since time.Time) (first time.Time) {
	const look = 50 * time.Millisecond // twice the interval at which a process looks
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, other := range c.running() {
		for _, v := range other.views {
			if at := v.At.Add(-look); other != n && v.At.After(since) && slices.Contains(v.Members, n.name) && (first.IsZero() || at.Before(first)) {
				first = at
			}
		}
	}
	return first
}

// The ways to cut a member off.
type cutting int

const (
	whole    cutting = iota // nothing passes between it and the other members and etcd
	deaf                    // it hears none of them, and they hear it
	fromEtcd                // nothing passes between it and etcd
)

// cut cuts the network of a place for some time after the others have removed its member. The
// MCP server can be reached by all.
func (c *cluster) cut(i int, how cutting, d time.Duration) {
	c.t.Helper()
	n := c.slots[i].running
	others := []string{"etcd"}
	for k := range c.slots {
		if k != i && how != fromEtcd {
			others = append(others, slotName(k))
		}
	}
	kind := history.Cut
	if how == fromEtcd {
		kind = history.CutFromEtcd
	}
	f := c.fault(kind, n.name)
	for _, other := range others {
		c.network.Cut(other, slotName(i))
		if how != deaf {
			c.network.Cut(slotName(i), other)
		}
	}
	rest := slices.DeleteFunc(c.running(), func(other *node) bool { return other == n })
	c.awaitViews(rest, rest)
	<-time.After(d)
	for _, other := range others {
		c.network.Heal(slotName(i), other)
		c.network.Heal(other, slotName(i))
	}
	c.record(func() { f.Until = time.Now() })
	c.awaitMembers()
	c.settled(f)
}

// end ends the scenario: the agents end, the members leave, and the verifier must find
// nothing. The codes are those that calls may fail with.
func (c *cluster) end(codes ...messages.Code) *history.Report {
	c.t.Helper()
	if c.load != nil {
		scopes := c.load.Scopes
		c.quiet()
		c.start(member.Load{Scopes: scopes, Timeout: 10 * time.Second}) // each scope still works
	}
	c.quiet()
	c.history.End = time.Now()
	c.awaitMembers()
	for i, n := range c.running() {
		c.exit(n)
		c.slots[i].running = nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.server.Record(&c.history)
	c.history.Sort()
	report := c.history.Report()
	c.t.Log(c.title() + "\n" + report.String())
	require.NoError(c.t, errors.Join(append(c.errs, c.history.Check())...))
	for code, n := range report.Failures {
		require.Contains(c.t, codes, code, "%d calls failed with it, such as %s", n, c.example(code))
	}
	return report
}

// title names the scenario and its setting.
func (c *cluster) title() string {
	store := "no store"
	if c.shared {
		store = "a shared store"
	}
	if c.tls {
		store += ", TLS"
	}
	return fmt.Sprintf("%s: %s, %s", strings.TrimPrefix(c.t.Name(), "Test"), c.witness, store)
}

// example describes a call that has failed with a code, and its executions.
func (c *cluster) example(code messages.Code) (text string) {
	for _, call := range c.history.Calls {
		if call.Code != code {
			continue
		}
		text = fmt.Sprintf("%+v", *call)
		for _, e := range c.history.Executions {
			if e.Call == call.ID {
				text += fmt.Sprintf("\n%+v", *e)
			}
		}
		break
	}
	return text
}

// etcd is a server of etcd.
type etcd struct {
	t        *testing.T
	dir      string
	client   string // the address that it listens on
	peer     string
	endpoint string // the address for the members
	process  *process
	starts   int
}

func startEtcd(t *testing.T, dir string) *etcd {
	t.Helper()
	e := &etcd{t: t, dir: dir, client: freeAddr(t), peer: freeAddr(t)}
	e.endpoint = e.client
	e.start()
	return e
}

// start starts the server, with its data.
func (e *etcd) start() {
	e.t.Helper()
	e.starts++
	ready := make(chan struct{})
	e.process = startProcess(e.t, e.dir, fmt.Sprint("etcd", e.starts), func(out io.Reader) {
		if lines := bufio.NewScanner(out); lines.Scan() {
			close(ready)
		}
		io.Copy(io.Discard, out) // it prints nothing else
	}, program("etcd"), "-dir", filepath.Join(e.dir, "etcd"), "-client", e.client, "-peer", e.peer)
	select {
	case <-ready:
	case <-time.After(patience):
		require.Fail(e.t, "etcd is not ready", e.process.tail())
	}
}
