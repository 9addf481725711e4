//go:build linux

package cluster_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
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
	proxied bool // there are proxies between the members, which can be stopped
	wired   bool // each member and etcd has a network namespace
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
	wires   *wires    // nil without namespaces
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
	if s.wired {
		leaks = nil // others run beside it
	}
	c := &cluster{setting: s, t: t, dir: dirOf(t), network: network.New(), history: history.History{Shared: s.shared, Lease: lease}}
	if s.wired {
		c.wires = newWires(t)
	}
	c.server = mcpserver.Start(c.listen())
	t.Cleanup(func() { // after the processes have ended
		require.NoError(t, c.server.Close())
		if leaks != nil {
			require.NoError(t, goleak.Find(leaks))
		}
	})
	if s.witness == "etcd" || s.shared {
		c.etcd = startEtcd(t, c.dir, c.wires)
		if s.proxied {
			c.etcd.endpoint = c.proxy("etcd", c.etcd.endpoint)
		}
	}
	if s.tls {
		c.pem = newPEMFiles(t, c.dir, net.IPv4(127, 0, 0, 1), net.ParseIP(hostIP(0)), net.ParseIP(hostIP(1)), net.ParseIP(hostIP(2)))
	}
	for i := range c.slots {
		one := &c.slots[i]
		if one.listen = net.JoinHostPort(hostIP(i), memberPort); !s.wired {
			one.listen = freeAddr(t)
		}
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

// listen returns a listener for the MCP server.
func (c *cluster) listen() net.Listener {
	listen := func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }
	if c.wired {
		listen = c.wires.listen
	}
	l, err := listen()
	require.NoError(c.t, err)
	return l
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
	n.process = startProcess(c.t, c.wires.host(i), c.dir, n.name, func(out io.Reader) { c.read(n, out) }, program("member"))
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
			r.Record(&c.history, n.name)
			switch {
			case r.Call != nil:
				n.calls++
			case r.View != nil:
				n.views = append(n.views, r.View)
			case r.Quiet != nil:
				n.quiet = r.Quiet
			case r.Error != "":
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
		return len(c.errs) > 0 || !slices.ContainsFunc(of, func(n *node) bool { return !slices.Equal(n.knows(), want) })
	}, func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		text := fmt.Sprintf("members %v are expected", want)
		for _, n := range of {
			text += fmt.Sprintf("\n%s knows %v\n%s", n.name, n.knows(), n.tail())
		}
		return text
	})
	c.mu.Lock()
	defer c.mu.Unlock()
	require.NoError(c.t, errors.Join(c.errs...))
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

// end ends the scenario, and the verifier must find nothing. The codes are those that calls may fail with.
func (c *cluster) end(codes ...messages.Code) *history.Report {
	c.t.Helper()
	report := c.finish()
	require.NoError(c.t, c.verify(report, codes...))
	return report
}

// finish has the agents end, and the members leave.
func (c *cluster) finish() *history.Report {
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
	return report
}

// verify returns what is wrong with the history.
func (c *cluster) verify(report *history.Report, codes ...messages.Code) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	errs := append(c.errs, c.history.Check())
	for code, n := range report.Failures {
		if !slices.Contains(codes, code) {
			errs = append(errs, fmt.Errorf("%d calls failed with %s, such as %s", n, string(code), c.example(code)))
		}
	}
	return errors.Join(errs...)
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
