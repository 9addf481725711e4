package node

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/schedule"
)

var cutsEvery = flag.Int("simulation.cuts", 37, "the test of all cuts takes every so many subsets; 1 is all of the 4,096")

// cutTime is for how long links are cut: longer than the lease, and than a registration in etcd.
const cutTime = 10 * time.Second

// directed are the links of three members and etcd.
var directed = func() (all [][2]string) {
	hosts := []string{"a", "b", "c", etcdHost}
	for _, from := range hosts {
		for _, to := range hosts {
			if from != to {
				all = append(all, [2]string{from, to})
			}
		}
	}
	return all
}()

// twoWitnesses is for how long two members act for one key today, where one of them learns from another member, or for the lack of
// it, that it was removed: until the heartbeats of two members, and until the lease of the last one ends.
const twoWitnesses = clusterLease + 2*clusterLease/4

// Each subset of the directed links of three members and etcd is cut, and healed. Where the links leave two witnesses, two
// members act for one key for as long as they are cut, and nowhere else.
func TestEveryCut(t *testing.T) {
	began, cuts, unbounded := time.Now(), 0, 0
	var bounded, longest, slowest time.Duration
	for set := 0; set < 1<<len(directed); set += *cutsEvery {
		s, healed := cutAndHeal(t, set)
		require.Empty(t, s.violation, "the links %s", linksOf(set))
		leaves := leavesTwoWitnesses(set)
		require.Equal(t, leaves, s.longest > twoWitnesses, "the links %s, and two members acted for %v", linksOf(set), s.longest)
		if cuts++; leaves {
			unbounded++
		} else {
			bounded = max(bounded, s.longest)
		}
		longest, slowest = max(longest, s.longest), max(slowest, healed)
	}
	t.Logf("%d subsets in %v; %d leave two witnesses, and two members acted for %v; otherwise for at most %v; healed within %v",
		cuts, time.Since(began).Round(time.Millisecond), unbounded, longest, bounded, slowest)
}

// linksOf says which links a subset has.
func linksOf(set int) (text string) {
	for i, l := range directed {
		if set&(1<<i) != 0 {
			text += fmt.Sprintf(" %s→%s", l[0], l[1])
		}
	}
	return text
}

// cutAndHeal cuts links while all members call all keys, and heals them. It returns how long it then took until all
// members knew each other.
func cutAndHeal(t *testing.T, set int) (s *simulation, healed time.Duration) {
	s = &simulation{Tape: schedule.Replay(nil)}
	synctest.Test(t, func(*testing.T) {
		s.Part()
		s.prepare(config{etcd: true, members: 3, fast: true})
		s.await(30*time.Second, "all members know each other", s.stable)
		s.callAll()
		s.pass(time.Second)
		for i, l := range directed {
			s.link(l[0], l[1]).cut = set&(1<<i) != 0
		}
		for range cutTime / (2 * time.Second) {
			s.callAll()
			s.pass(2 * time.Second)
		}
		at := time.Now()
		s.finish()
		healed = s.recovered.Sub(at)
	})
	return s, healed
}

// callAll has each member call each key.
func (s *simulation) callAll() {
	for _, p := range s.live() {
		for n := range 6 {
			s.send(p, s.call(fmt.Sprint("scope", n), "quick", 4*time.Second))
		}
	}
}

// leavesTwoWitnesses reports whether two members confirm each other's lease, and neither hears from etcd that it is not
// registered any longer, nor from the third one, which etcd confirms, and which acts for all keys.
func leavesTwoWitnesses(set int) bool {
	open := func(from, to string) bool {
		for i, l := range directed {
			if l == [2]string{from, to} {
				return set&(1<<i) == 0
			}
		}
		return false
	}
	both := func(a, b string) bool { return open(a, b) && open(b, a) }
	for _, m := range [][3]string{{"a", "b", "c"}, {"b", "c", "a"}, {"a", "c", "b"}} {
		x, y, third := m[0], m[1], m[2]
		if both(x, y) && !both(x, etcdHost) && !both(y, etcdHost) && both(third, etcdHost) && !both(x, third) && !both(y, third) {
			return true
		}
	}
	return false
}
