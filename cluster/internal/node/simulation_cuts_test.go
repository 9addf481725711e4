package node

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/schedule"
	"github.com/mcpactor/mcpactor/messages"
)

var cutsEvery = flag.Int("simulation.cuts", 37, "the test of all cuts with etcd takes every so many subsets; 1 is all of the 4,096")

const (
	// settled is how long after a cut the members of the view serve all keys.
	settled = 5 * time.Second
	// cutTime is for how long links are cut: longer than the lease.
	cutTime = settled + 7*time.Second
	// healTime is how long after the links are healed everything works.
	healTime = 5 * time.Second
)

// linksAmong returns the directed links of hosts.
func linksAmong(hosts ...string) (all [][2]string) {
	for _, from := range hosts {
		for _, to := range hosts {
			if from != to {
				all = append(all, [2]string{from, to})
			}
		}
	}
	return all
}

// Each subset of the directed links of three members, and of etcd, is cut, and healed. No two members act for a key at any time,
// whoever is in the view serves all keys 5 s after the cut, and all do so 5 s after the links are healed.
func TestEveryCut(t *testing.T) {
	for name, test := range map[string]struct {
		cfg   config
		links [][2]string
		every int
	}{
		"etcd":  {config{etcd: true, members: 3, fast: true}, linksAmong("a", "b", "c", etcdHost), *cutsEvery},
		"hosts": {config{members: 3, fast: true}, linksAmong("a", "b", "c"), 1},
	} {
		t.Run(name, func(t *testing.T) {
			began, cuts, served := time.Now(), 0, 0
			var recoveries []time.Duration
			sum := tally{failures: map[messages.Code]int{}}
			for set := 0; set < 1<<len(test.links); set += test.every {
				s, healed := cutAndHeal(t, test.cfg, test.links, set)
				if !s.Intact() {
					t.Fatalf("the links %s: %s", linksOf(test.links, set), s.Violation())
				}
				if cuts++; s.holders > 0 {
					served++
				}
				require.LessOrEqual(t, healed, healTime, "the links %s", linksOf(test.links, set))
				recoveries = append(recoveries, healed)
				sum.add(s)
			}
			slices.Sort(recoveries)
			t.Logf("%d subsets in %v; with %d of them some members served all keys", cuts, time.Since(began).Round(time.Millisecond), served)
			t.Logf("%d calls, %d answered, %d ran twice; failures by code: %v", sum.calls, sum.answered, sum.twice, sum.failures)
			t.Logf("healed within %v, median %v", recoveries[len(recoveries)-1], recoveries[len(recoveries)/2])
		})
	}
}

// tally counts the calls of simulations.
type tally struct {
	calls, answered, twice int
	failures               map[messages.Code]int
}

// add adds the calls of a simulation.
func (a *tally) add(s *simulation) {
	for _, k := range s.commands {
		op, is := k.cmd.(*messages.CallTool)
		if !is {
			continue
		}
		a.calls++
		if len(k.replies) == 1 {
			a.answered++
			if f, failed := k.replies[0].(*messages.Failure); failed {
				a.failures[f.Code]++
			}
		}
		if s.executed[op.ID] > 1 {
			a.twice++
		}
	}
}

// linksOf says which links a subset has.
func linksOf(links [][2]string, set int) (text string) {
	for i, l := range links {
		if set&(1<<i) != 0 {
			text += fmt.Sprintf(" %s→%s", l[0], l[1])
		}
	}
	return text
}

// cutAndHeal cuts links while all members call all keys, and heals them. It returns how long it then took until all
// members knew each other.
func cutAndHeal(t *testing.T, cfg config, links [][2]string, set int) (s *simulation, healed time.Duration) {
	s = inBubble(t, schedule.Replay(nil), testing.Verbose(), func(s *simulation) {
		s.Part()
		s.prepare(cfg)
		s.await(30*time.Second, "all members know each other", s.stable)
		s.callAll(s.live())
		s.pass(time.Second)
		for i, l := range links {
			s.link(l[0], l[1]).cut = set&(1<<i) != 0
		}
		s.Logf("== cut %s", linksOf(links, set))
		for range 5 {
			s.callAll(s.live())
			s.pass(settled / 5)
		}
		s.checkHolders()
		at := time.Now()
		s.finish()
		healed = s.recovered.Sub(at) - time.Second // for which it must have lasted
	})
	if !s.Intact() {
		t.Log(strings.Join(s.Log(), "\n"))
	}
	return s, healed
}

// callAll has members call each key.
func (s *simulation) callAll(by []*process) (all []*command) {
	for _, p := range by {
		for n := range 6 {
			all = append(all, s.send(p, s.call(fmt.Sprint("scope", n), "quick", 4*time.Second)))
		}
	}
	return all
}

// checkHolders checks that all keys work on all members of the view. Three times, because that must not change.
func (s *simulation) checkHolders() {
	for range 3 {
		var holders []*process
		for _, p := range s.live() {
			if p.node.members.inside() && p.lease.Held() {
				holders = append(holders, p)
			}
		}
		s.holders = len(holders)
		calls := s.callAll(holders)
		s.pass((cutTime - settled) / 3)
		for _, k := range calls {
			if len(k.replies) == 0 {
				s.logState()
				s.Violate("a member of the view does not serve", "%s has no reply to %v", k.p.name, describe(k.cmd))
			} else if f, failed := k.replies[0].(*messages.Failure); failed {
				s.logState()
				s.Violate("a member of the view does not serve", "%s: %v", k.p.name, f)
			}
		}
	}
}

func TestEveryCutIsChecked(t *testing.T) {
	s, _ := cutAndHeal(t, config{etcd: true, members: 3, fast: true}, linksAmong("a", "b", "c", etcdHost), 0)
	require.Empty(t, s.Violation())
	require.Equal(t, 3, s.holders)
}
