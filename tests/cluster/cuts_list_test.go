//go:build linux

package cluster_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// cut is a case of TestEveryCut: links that are cut, or something else that is done to a host.
type cut struct {
	name    string
	witness string // "etcd" or "hosts"
	shared  bool   // the members share a store, which is in etcd: with etcd as the witness always
	group   string // of the table
	links   []link
	fault   func(c *cluster) (end func()) // or something else that is done, if it is not nil
	stops   int                           // or the number of the member that is stopped, from 1 on
	serve   int                           // how many members serve all keys meanwhile
	quick   bool                          // it is among the first
}

// linksAmong returns all links of the first hosts.
func linksAmong(hosts int) (all []link) {
	for from := range hosts {
		for to := range hosts {
			if from != to {
				all = append(all, link{from, to})
			}
		}
	}
	return all
}

// allCuts returns all cases, those first that a short run has.
func allCuts() (all []cut) {
	for _, witness := range []string{"etcd", "hosts"} {
		var list []cut
		hosts, seen := size, map[string]bool{}
		if witness == "etcd" {
			hosts++
		}
		add := func(group string, links []link) {
			one := cut{name: linksName(links), group: group, links: links, serve: servingDespite(witness, links)}
			one.quick = slices.Contains(quickCuts[witness], one.name)
			if !seen[one.name] {
				seen[one.name] = true
				list = append(list, one)
			}
		}
		links := linksAmong(hosts)
		for _, l := range links {
			add("a directed link", []link{l})
		}
		for i, l := range links {
			for _, other := range links[i+1:] {
				add("two directed links", []link{l, other})
			}
		}
		for _, pairs := range classes(hosts) {
			add("several links, both directions", pairs)
		}
		list = append(list, faults(witness)...)
		for _, one := range list {
			one.witness, one.shared = witness, witness == "etcd"
			one.group = witness + ": " + one.group
			all = append(all, one)
			if !one.shared && one.quick {
				one.shared, one.quick = true, false
				one.name, one.group = one.name+", with a store", one.group+", with a store"
				all = append(all, one)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b cut) int {
		switch {
		case a.quick == b.quick:
			return 0
		case a.quick:
			return -1
		}
		return 1
	})
	return all
}

// quickCuts are the cuts of a short run. The third with etcd has two members that see each other, and neither etcd nor the
// third one, which sees etcd.
var quickCuts = map[string][]string{
	"etcd":  {"m1→m2", "m1→etcd, etcd→m2", "m1↔m3, m1↔etcd, m2↔m3, m2↔etcd"},
	"hosts": {"m1→m2", "m1↔m2, m1↔m3"},
}

// linksName names links: two of opposite directions with one arrow.
func linksName(links []link) string {
	var names []string
	for _, l := range links {
		switch both := slices.Contains(links, link{l.to, l.from}); {
		case !both:
			names = append(names, l.String())
		case l.from < l.to:
			names = append(names, hostName(l.from)+"↔"+hostName(l.to))
		}
	}
	return strings.Join(names, ", ")
}

// classes returns one set of undirected links of each class up to renaming members, each link as two directed ones.
func classes(hosts int) (all [][]link) {
	var edges []link
	for _, l := range linksAmong(hosts) {
		if l.from < l.to {
			edges = append(edges, l)
		}
	}
	for set := 1; set < 1<<len(edges); set++ {
		first := true
		for _, names := range [][]int{{0, 2, 1, 3}, {1, 0, 2, 3}, {1, 2, 0, 3}, {2, 0, 1, 3}, {2, 1, 0, 3}} {
			renamed := 0
			for i, e := range edges {
				if set&(1<<i) != 0 {
					from, to := names[e.from], names[e.to]
					renamed |= 1 << slices.Index(edges, link{min(from, to), max(from, to)})
				}
			}
			first = first && set <= renamed
		}
		if !first {
			continue
		}
		var links []link
		for i, e := range edges {
			if set&(1<<i) != 0 {
				links = append(links, e, link{e.to, e.from})
			}
		}
		all = append(all, links)
	}
	return all
}

// servingDespite returns how many members serve while links are cut: the most that reach each other, and etcd, in both
// directions. Without etcd, they must be more than half.
func servingDespite(witness string, cut []link) (most int) {
	reach := func(a, b int) bool { return !slices.Contains(cut, link{a, b}) && !slices.Contains(cut, link{b, a}) }
	for set := range 1 << size {
		var members []int
		for m := range size {
			if set&(1<<m) != 0 {
				members = append(members, m)
			}
		}
		all := true
		for i, a := range members {
			all = all && (witness != "etcd" || reach(a, etcdHost))
			for _, b := range members[i+1:] {
				all = all && reach(a, b)
			}
		}
		if all && (witness == "etcd" || len(members) > size/2) {
			most = max(most, len(members))
		}
	}
	return most
}

func TestListOfCutsIsComplete(t *testing.T) {
	count := map[string]int{}
	names := map[string]bool{}
	quick := 0
	for i, c := range allCuts() {
		require.False(t, names[c.witness+c.name], "%s is there twice", c.name)
		names[c.witness+c.name] = true
		kind := "several links"
		switch {
		case c.fault != nil || c.stops > 0:
			kind = "other"
		case len(c.links) < 3:
			kind = strings.Repeat("link", len(c.links))
		}
		count[c.witness+" "+kind]++
		if c.quick {
			require.Equal(t, quick, i)
			quick++
		}
	}
	require.Equal(t, 10, quick)
	require.Equal(t, map[string]int{
		"etcd link": 12, "etcd linklink": 66, "etcd several links": 17, "etcd other": 8,
		"hosts link": 6 + 1, "hosts linklink": 15, "hosts several links": 2 + 1, "hosts other": 5 + 1,
	}, count)
	require.Len(t, classes(size+1), 19)
	require.Len(t, classes(size), 3)
}

func TestMembersThatServeDespiteACut(t *testing.T) {
	for name, test := range map[string]struct {
		witness string
		cut     []link
		want    int
	}{
		"nothing":                    {"etcd", nil, 3},
		"one of etcd":                {"etcd", []link{{0, etcdHost}}, 2},
		"answers of etcd":            {"etcd", []link{{etcdHost, 0}}, 2},
		"one is cut from both":       {"etcd", []link{{0, 1}, {2, 0}}, 2},
		"nobody reaches another one": {"etcd", []link{{0, 1}, {1, 2}, {2, 0}}, 1},
		"all of etcd":                {"etcd", []link{{0, etcdHost}, {1, etcdHost}, {etcdHost, 2}}, 0},
		"one host":                   {"hosts", []link{{0, 1}, {0, 2}}, 2},
		"two pairs":                  {"hosts", []link{{0, 1}}, 2},
		"no majority":                {"hosts", []link{{0, 1}, {1, 2}, {2, 0}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			require.Equal(t, test.want, servingDespite(test.witness, test.cut))
		})
	}
}
