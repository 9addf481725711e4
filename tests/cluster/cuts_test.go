//go:build linux

package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	// settles is how long after a cut the members of the view serve all keys, and after the healing all members.
	settles = 5 * time.Second
	// holds is how long they are then seen to do so.
	holds = 6 * time.Second
	// keys is the number of keys.
	keys = 12
	// callTime is what a call has: within it a member of the view answers with a result.
	callTime = 5 * time.Second
)

// faults are the cases that cut no link.
func faults(witness string) []cut {
	swallow := func(links ...link) func(c *cluster) (end func()) {
		return func(c *cluster) func() {
			n := 0
			for _, l := range links {
				n += c.wires.swallow(l)
			}
			require.Positive(c.t, n, "there is no connection")
			return func() { c.wires.release(n) }
		}
	}
	all := []cut{
		{name: "connections m1→m2 swallowed", serve: 3, quick: witness == "etcd", fault: swallow(link{0, 1})},
		{name: "connections m1→m2, m2→m1 swallowed", serve: 3, fault: swallow(link{0, 1}, link{1, 0})},
	}
	if witness == "etcd" {
		all = append(all,
			cut{name: "connections m1→etcd swallowed", serve: 3, fault: swallow(link{0, etcdHost})},
			cut{name: "etcd hung", quick: true, fault: func(c *cluster) func() { return c.etcd.process.pause() }},
			cut{name: "etcd dead", quick: true, fault: func(c *cluster) func() {
				c.etcd.process.kill()
				return c.etcd.start
			}})
	}
	for i := range all {
		all[i].group = all[i].name
	}
	for i := range size {
		all = append(all, cut{name: slotName(i) + " paused", group: "a member paused", stops: i + 1, serve: size - 1, quick: i == 1})
	}
	return all
}

// Links between members, and etcd, that are processes in network namespaces are cut, and healed. See cutRow.run for what
// must hold.
func TestEveryCutOnRealProcesses(t *testing.T) {
	if *cuts == 0 {
		t.Skip("it needs root and iproute2: use make cuts")
	}
	list := allCuts()
	if *cuts > 0 {
		list = list[:min(*cuts, len(list))]
	}
	rows := make([]cutRow, len(list))
	t.Run("case", func(t *testing.T) { // which ends when all have ended
		for i, one := range list {
			rows[i].cut = one
			t.Run(one.witness+" "+one.name, func(t *testing.T) {
				t.Parallel()
				rows[i].run(t)
			})
		}
	})
	t.Log(cutTable(rows))
}
