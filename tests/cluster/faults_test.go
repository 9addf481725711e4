//go:build linux

package cluster_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/tests/cluster/history"
)

// fault records the beginning of a fault.
func (c *cluster) fault(kind history.Kind, member string) *history.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.history.Begin(kind, member)
}

// backUpEtcd makes a copy of the data of etcd.
func (c *cluster) backUpEtcd() {
	c.t.Helper()
	defer c.etcd.process.pause()()
	require.NoError(c.t, os.CopyFS(filepath.Join(c.dir, "backup"), os.DirFS(filepath.Join(c.dir, "etcd"))))
}

// restoreEtcd has etcd end, and start with the copy, or without data, when all leases have run out. All members join anew.
func (c *cluster) restoreEtcd(copied bool) {
	c.t.Helper()
	f := c.fault(history.Down, "")
	c.etcd.process.kill()
	data := filepath.Join(c.dir, "etcd")
	require.NoError(c.t, os.RemoveAll(data))
	if copied {
		require.NoError(c.t, os.Rename(filepath.Join(c.dir, "backup"), data))
	}
	<-time.After(lease * 102 / 100)
	before := c.joins()
	c.etcd.start()
	c.record(func() { f.Until = time.Now() })
	until(c.t, func() bool { return c.joins() == before+size }, func() string { return fmt.Sprint(c.joins()-before, " of them have joined anew") })
	c.awaitMembers()
	c.settled(f)
}

// joins returns how often the running members have joined.
func (c *cluster) joins() (n int) {
	for _, one := range c.running() {
		text, err := os.ReadFile(one.log)
		require.NoError(c.t, err)
		n += bytes.Count(text, []byte("member joins the cluster"))
	}
	return n
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
	resume := n.process.pause()
	<-time.After(d)
	removed = c.without(n)
	c.record(func() { f.Until = time.Now() })
	resume()
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
