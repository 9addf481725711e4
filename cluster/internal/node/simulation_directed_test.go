package node

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/schedule"
)

// inSimulation runs a scenario on a simulated cluster without choices. In the end all works again, and nothing is left.
func inSimulation(t *testing.T, cfg config, scenario func(s *simulation)) {
	s := inBubble(t, schedule.Replay(nil), true, func(s *simulation) {
		s.Part()
		s.prepare(cfg)
		s.await(30*time.Second, "all members know each other", s.stable)
		scenario(s)
		s.finish()
	})
	require.Empty(t, s.Violation())
}

func TestMemberThatIsAloneIsNotFencedByItsPause(t *testing.T) {
	inSimulation(t, config{members: 1, fast: true}, func(s *simulation) {
		s.pass(clusterLease)
		s.processes[0].pause(2 * clusterLease)
		s.pass(2*clusterLease + 100*time.Millisecond)
		require.True(t, s.processes[0].lease.Held())
	})
}

// A member that both others of its view cannot reach gives its keys up, although the witness reaches it.
func TestMemberThatTheOthersDoNotReachIsRemoved(t *testing.T) {
	inSimulation(t, config{etcd: true, members: 3, fast: true}, func(s *simulation) {
		s.cut("a", "b", true)
		s.cut("a", "c", true)
		s.pass(5 * time.Second)
		require.False(t, s.processes[0].lease.Held())
		require.Len(t, s.processes[1].node.members.keeper.View().Members, 2)
	})
}

// Of two members that do not reach each other one goes, and the other one has all keys.
func TestOneOfTwoMembersThatDoNotReachEachOtherGoes(t *testing.T) {
	inSimulation(t, config{etcd: true, members: 2, fast: true}, func(s *simulation) {
		s.cut("a", "b", false)
		s.pass(5 * time.Second)
		require.NotEqual(t, s.processes[0].lease.Held(), s.processes[1].lease.Held())
	})
}

// A member that leaves after it has asked to be one becomes one, and leaves at once: the others do not wait for the end of its lease.
func TestMemberThatLeavesWhileItJoinsLeaves(t *testing.T) {
	inSimulation(t, config{etcd: true, members: 2, fast: true}, func(s *simulation) {
		s.spawn("c")
		c := s.byName("c")
		for !c.node.members.keeper.Joins() && s.Intact() {
			s.step(time.Now().Add(time.Second))
		}
		c.leave()
		s.await(clusterLease/2, "it has left", func() bool { return c.left && len(s.etcd.register.View.Members) == 2 })
		s.await(clusterLease/2, "the others know that", s.stable)
	})
}

// Without an answer of etcd nobody acts, and nobody is removed.
func TestNobodyIsRemovedWhileEtcdHangs(t *testing.T) {
	inSimulation(t, config{etcd: true, members: 3, fast: true}, func(s *simulation) {
		before := s.entered
		s.etcd.hung = true
		s.pass(10 * clusterLease)
		for _, p := range s.processes {
			require.False(t, p.lease.Held())
		}
		s.etcd.hung = false
		s.await(2*time.Second, "all act again", s.stable)
		require.Equal(t, before, s.entered)
	})
}

// Etcd loses its last views, up to all, or only the last renewals: all who see that join anew. Meanwhile etcd may be down, or
// reach nobody but new members, whose views have the numbers of those that were lost.
func TestMembersJoinAnewWhenEtcdHasLostViews(t *testing.T) {
	for lost := range 4 {
		for _, away := range []time.Duration{0, clusterLease, 2 * clusterLease} {
			for _, others := range []string{"", "def"} {
				inSimulation(t, config{etcd: true, members: 3, fast: true}, func(s *simulation) {
					require.Len(t, s.etcd.backups, 3)
					old := s.processes
					var ids []string
					for _, p := range old {
						ids = append(ids, p.node.members.id)
						s.cut(p.name, etcdHost, true)
					}
					s.etcd.loses(lost)
					for _, name := range others {
						s.spawn(string(name))
					}
					s.pass(away)
					s.restoreAll()
					s.pass(clusterLease)
					s.await(recovery, "all act by one view", s.stable)
					for i, p := range old {
						if lost > 0 {
							require.NotEqual(t, ids[i], p.node.members.id)
						} else if others == "" {
							require.Equal(t, ids[i], p.node.members.id)
						}
					}
				})
			}
		}
	}
}
