package node

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/schedule"
)

// inSimulation runs a scenario on a simulated cluster without choices. In the end all works again, and nothing is left.
func inSimulation(t *testing.T, cfg config, scenario func(s *simulation)) {
	s := &simulation{Tape: schedule.Replay(nil), keep: true}
	synctest.Test(t, func(*testing.T) {
		s.Part()
		s.prepare(cfg)
		s.await(30*time.Second, "all members know each other", s.stable)
		scenario(s)
		s.finish()
	})
	require.Empty(t, s.violation)
}

func TestMemberThatIsAloneIsNotFencedByItsPause(t *testing.T) {
	inSimulation(t, config{members: 1, fast: true}, func(s *simulation) {
		s.pass(clusterLease)
		s.processes[0].pause(2 * clusterLease)
		s.pass(3 * clusterLease)
		require.True(t, s.processes[0].lease.Held())
	})
}

func TestMembersThatHaveRemovedEachOtherJoinAgain(t *testing.T) {
	inSimulation(t, config{members: 3, fast: true}, func(s *simulation) {
		s.processes[2].kill()
		s.cut("a", "b", true)
		s.pass(5 * clusterLease)
		require.False(t, s.processes[0].lease.Held())
		require.False(t, s.processes[1].lease.Held())
	})
}

// A member that is cut off does not hear that the registration of its earlier incarnation has ended.
func TestEarlierIncarnationsAreNoRivalsOfAMemberThatIsCutOff(t *testing.T) {
	inSimulation(t, config{etcd: true, members: 3, fast: true}, func(s *simulation) {
		s.etcd.registered["a0"] = &registration{address: Address{ID: "a0", Host: "a:1"}}
		s.etcd.extend(s, "a0")
		s.etcd.changed(s)
		s.pass(time.Second)
		for _, host := range s.hosts() {
			s.cut("a", host, true)
		}
		s.pass(2 * rivalAfter * clusterLease)
		require.Contains(t, s.processes[0].node.members, Address{ID: "a0", Host: "a:1"})
	})
}
