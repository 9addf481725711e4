package quorum

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/mcpactor/mcpactor/cluster/internal/view"
)

// hosts are hosts whose packets arrive at once, or not at all.
type hosts struct {
	t        *testing.T
	random   *rand.Rand
	names    []string
	all      map[string]*Host
	stored   map[string]State
	saves    int
	lose     float64
	cut      map[[2]string]bool
	hold     map[[2]string][]Packet // what these links carry is late
	answered map[uint64]Answered    // by number
	number   uint64
	packets  []Packet
	from     []string
}

func newHosts(t *testing.T, seed uint64, n int) *hosts {
	c := &hosts{t: t, random: rand.New(rand.NewPCG(seed, 0)), all: map[string]*Host{}, stored: map[string]State{}, cut: map[[2]string]bool{}, answered: map[uint64]Answered{}}
	for i := range n {
		c.names = append(c.names, fmt.Sprintf("h%d:1", i))
	}
	for _, name := range c.names {
		c.restart(name, false)
	}
	return c
}

// restart starts a host: with what it has stored, or with nothing.
func (c *hosts) restart(name string, stored bool) {
	state := State{ID: 1 + c.random.Uint64N(1<<62)}
	if stored {
		state = c.stored[name]
	}
	h, err := NewHost(name, c.names, state)
	require.NoError(c.t, err)
	c.all[name], c.stored[name] = h, h.State()
	c.stored[name] = State{ID: state.ID, Hard: state.Hard, Snapshot: state.Snapshot, Entries: state.Entries}
}

// run has some ticks pass.
func (c *hosts) run(ticks int) {
	for range ticks {
		for _, name := range c.names {
			if h := c.all[name]; h != nil {
				h.Tick()
				c.drive(name)
			}
		}
		for len(c.packets) > 0 {
			p, from := c.packets[0], c.from[0]
			c.packets, c.from = c.packets[1:], c.from[1:]
			if held, holds := c.hold[[2]string{from, p.To}]; holds {
				c.hold[[2]string{from, p.To}] = append(held, p)
				continue
			}
			if h := c.all[p.To]; h != nil && !c.cut[[2]string{from, p.To}] && c.random.Float64() >= c.lose {
				h.Receive(from, p.Data)
				c.drive(p.To)
			}
		}
	}
}

// drive does what a host is to do, through its log.
func (c *hosts) drive(name string) {
	h := c.all[name]
	for {
		out, some := h.Ready()
		if !some {
			return
		}
		if out.Save != nil {
			c.saves++
			part := State{Hard: out.Save.Hard, Entries: out.Save.Entries}
			if out.Save.Snapshot != nil {
				part = h.State()
			}
			data, err := encode(part)
			require.NoError(c.t, err)
			state := c.stored[name]
			require.NoError(c.t, state.add(data[headerSize:]))
			c.stored[name] = state
		}
		for _, p := range out.Packets {
			c.packets, c.from = append(c.packets, p), append(c.from, name)
		}
		for _, a := range out.Answers {
			c.answered[a.Number] = a
		}
	}
}

// write asks for a next view, and reports whether there was an answer.
func (c *hosts) write(name string) (Answered, bool) {
	c.number++
	c.all[name].Ask(c.number, &view.Request{From: view.Member{ID: name, Host: name}, Beat: true, First: true})
	c.drive(name)
	c.run(30)
	a, is := c.answered[c.number]
	return a, is
}

func TestHostsAgreeOnTheOrderOfRequests(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5} {
		c := newHosts(t, 1, n)
		c.run(60)
		last := uint64(0)
		for i := range 20 {
			a, is := c.write(c.names[i%n])
			require.True(t, is)
			require.Greater(t, a.Answer.Beats[c.names[i%n]].Revision, last)
			last = a.Answer.Beats[c.names[i%n]].Revision
		}
	}
}

func TestNothingBeginsBeforeAllHostsHaveStarted(t *testing.T) {
	c := newHosts(t, 1, 3)
	delete(c.all, "h2:1")
	c.run(200)
	_, is := c.write("h0:1")
	require.False(t, is)
	require.Equal(t, []string{"h2:1"}, c.all["h0:1"].Lacks())
	require.Equal(t, []string{"h0:1", "h1:1"}, c.all["h0:1"].Fresh())
	c.restart("h2:1", false)
	c.run(100)
	_, is = c.write("h0:1")
	require.True(t, is)
}

func TestHostThatKnowsNoLeaderKnowsWhoRuns(t *testing.T) {
	c := newHosts(t, 1, 3)
	c.run(60)
	leader := slices.IndexFunc(c.names, func(name string) bool { return c.all[name].leads() })
	name, other := c.names[(leader+1)%3], c.names[leader]
	c.restart(name, true)
	c.cut[[2]string{other, name}], c.cut[[2]string{name, other}] = true, true
	c.run(60)
	require.False(t, c.all[name].Led())
	require.Equal(t, []string{other}, c.all[name].Lacks())
	require.Empty(t, c.all[name].Fresh())
}

func TestHostThatHasLostItsLogIsANewVoter(t *testing.T) {
	c := newHosts(t, 1, 3)
	c.run(60)
	_, is := c.write("h1:1")
	require.True(t, is)
	for range 10 {
		for _, name := range c.names {
			c.restart(name, false)
			c.run(150)
			require.True(t, c.all[name].isVoter())
			a, is := c.write(name)
			require.True(t, is)
			require.Contains(t, a.Answer.Beats, "h1:1")
			require.Len(t, c.all[name].voters, 3)
		}
	}
}

func TestHostsGoOnWithTheirLogs(t *testing.T) {
	c := newHosts(t, 1, 3)
	c.run(60)
	last := uint64(0)
	for range 10 {
		for range 100 { // so that there are snapshots
			a, is := c.write("h1:1")
			require.True(t, is)
			require.Greater(t, a.Answer.Beats["h1:1"].Revision, last)
			last = a.Answer.Beats["h1:1"].Revision
		}
		for _, name := range c.names {
			c.restart(name, true)
		}
		c.run(60)
	}
	require.NotNil(t, c.stored["h0:1"].Snapshot)
}

// What was answered is never forgotten, whatever is lost, cut and restarted.
func TestAnsweredRequestsLast(t *testing.T) {
	for seed := range uint64(40) {
		c := newHosts(t, seed, 3)
		c.run(60)
		last := uint64(0)
		for range 60 {
			switch name := c.names[c.random.IntN(3)]; c.random.IntN(8) {
			case 0:
				c.cut[[2]string{name, c.names[c.random.IntN(3)]}] = true
			case 1:
				clear(c.cut)
			case 2:
				c.restart(name, true)
			case 3:
				c.lose = []float64{0, 0.1, 0.3}[c.random.IntN(3)]
			case 4:
				if c.random.IntN(4) == 0 {
					clear(c.cut)
					c.lose = 0
					c.run(200)
					c.restart(name, false)
					c.run(200)
				}
			default:
				if a, is := c.write(name); is {
					revision := a.Answer.Beats[name].Revision
					require.Greater(t, revision, last, "seed %d", seed)
					last = revision
				}
			}
		}
		clear(c.cut)
		c.lose = 0
		c.run(200)
		for _, name := range c.names {
			a, is := c.write(name)
			require.True(t, is, "seed %d", seed)
			require.Greater(t, a.Answer.Beats[name].Revision, last)
			last = a.Answer.Beats[name].Revision
		}
	}
}

// leaveBut has all hosts but one leave at once, in so many rounds. Each ends when it may.
func (c *hosts) leaveBut(last string, rounds int) {
	for range rounds {
		for _, name := range c.names {
			if h := c.all[name]; h != nil && name != last && c.random.IntN(3) == 0 && h.Leave() {
				delete(c.all, name)
			}
		}
		c.run(1)
	}
}

// Hosts that leave at once, each of which ends when it may, leave a last one that needs nobody, and that starts again alone.
func TestTheLastHostIsEnough(t *testing.T) {
	for seed := range uint64(40) {
		c := newHosts(t, seed, 3)
		c.run(60)
		c.lose = float64(seed%3) * 0.1
		last := c.names[seed%3]
		c.leaveBut(last, 400)
		require.Len(t, c.all, 1, "seed %d", seed)
		c.run(60)
		_, is := c.write(last)
		require.True(t, is, "seed %d", seed)
		require.True(t, c.all[last].Leave(), "the last one remains a voter")
		c.restart(last, true)
		c.run(60)
		_, is = c.write(last)
		require.True(t, is, "seed %d", seed)
		for _, name := range c.names {
			if name != last {
				c.restart(name, true)
			}
		}
		c.lose = 0
		c.run(200)
		for _, name := range c.names {
			_, is := c.write(name)
			require.True(t, is, "seed %d", seed)
		}
	}
}

// leave has a host leave, and end when it may.
func (c *hosts) leave(name string) {
	c.t.Helper()
	for i := 0; !c.all[name].Leave(); i++ {
		require.Less(c.t, i, 1000)
		c.run(1)
	}
	delete(c.all, name)
}

// Each write to a disk delays the answer.
func TestHostsStoreARequestOnce(t *testing.T) {
	c := newHosts(t, 1, 3)
	c.run(60)
	c.saves = 0
	for range 100 {
		_, is := c.write("h1:1")
		require.True(t, is)
	}
	require.Equal(t, 3*100, c.saves)
}

// Hosts that were killed, and do not come back, are not needed by those that are restarted one after the other, each of which gives
// up its vote meanwhile.
func TestHostsAreRestartedBesideThoseThatWereKilled(t *testing.T) {
	for seed := range uint64(40) {
		n := 3 + 2*int(seed%2)
		c := newHosts(t, seed, n)
		c.run(60)
		stay := c.names[n/2:]
		for _, name := range c.names[:n/2] {
			delete(c.all, name)
		}
		c.run(2 + int(seed))
		for _, name := range slices.Concat(stay, stay) {
			c.leave(name)
			for _, one := range slices.Concat(stay, stay[:1]) {
				if c.all[one] != nil {
					_, is := c.write(one)
					require.True(t, is, "seed %d", seed)
				}
			}
			c.restart(name, true)
			c.run(30)
		}
		for _, name := range c.names { // they come back nevertheless
			if c.all[name] == nil {
				c.restart(name, true)
			}
		}
		c.run(60)
		for _, name := range c.names {
			_, is := c.write(name)
			require.True(t, is, "seed %d", seed)
			require.Equal(t, n, c.all[name].Voters())
		}
	}
}

// Each of them ends in the time that Stop has, which is three times freshTicks. The last one remains a voter, and needs nobody.
func TestHostsThatAllLeaveBesideThoseThatWereKilled(t *testing.T) {
	for seed := range uint64(40) {
		n := 3 + 2*int(seed%2)
		c := newHosts(t, seed, n)
		c.run(60)
		for i := range n / 2 {
			delete(c.all, c.names[(int(seed)+i)%n])
		}
		c.run(2 * freshTicks) // there is a leader
		var last string
		for ticks := 0; len(c.all) > 0; ticks++ {
			require.Less(t, ticks, 3*freshTicks, "seed %d", seed)
			for _, name := range c.names {
				if h := c.all[name]; h != nil && h.Leave() {
					if h.isVoter() {
						last = name
					}
					delete(c.all, name)
				}
			}
			c.run(1)
		}
		c.restart(last, true)
		c.run(60)
		_, is := c.write(last)
		require.True(t, is, "seed %d", seed)
	}
}

// A host that is killed as it leaves, at any time, is not needed by the others, of which one was cut off and lost its vote.
func TestHostThatIsKilledAsItLeavesIsNotNeeded(t *testing.T) {
	for seed := range uint64(200) {
		c := newHosts(t, seed, 3)
		c.run(60)
		leaves, silent := c.names[seed%3], c.names[(seed+1)%3]
		for _, name := range c.names {
			c.cut[[2]string{silent, name}] = true
		}
		c.lose = float64(seed%3) / 5
		for range c.random.IntN(4 * freshTicks) {
			if c.all[leaves].Leave() {
				break
			}
			c.run(1)
		}
		delete(c.all, leaves)
		clear(c.cut)
		c.lose = 0
		c.run(60)
		for _, name := range c.names {
			if name != leaves {
				_, is := c.write(name)
				require.True(t, is, "seed %d", seed)
			}
		}
	}
}

// A host that is silent for a moment is not taken for one that was killed.
func TestHostThatIsSilentForAMomentRemainsAVoter(t *testing.T) {
	c := newHosts(t, 1, 3)
	c.run(60)
	leader := slices.IndexFunc(c.names, func(name string) bool { return c.all[name].leads() })
	leaves, silent := c.names[(leader+1)%3], c.names[(leader+2)%3]
	c.cut[[2]string{silent, c.names[leader]}] = true
	c.run(2)
	for range freshTicks - 3 {
		require.False(t, c.all[leaves].Leave())
		c.run(1)
	}
	clear(c.cut)
	c.run(1)
	c.leave(leaves)
	require.Equal(t, 2, c.all[silent].Voters())
}

// One that has just become a voter could not answer yet.
func TestHostThatJoinsIsNotTakenForOneThatWasKilled(t *testing.T) {
	c := newHosts(t, 1, 3)
	c.run(60)
	guest := c.names[slices.IndexFunc(c.names, func(name string) bool { return !c.all[name].leads() })]
	c.leave(guest)
	c.run(freshTicks)
	leader := c.names[slices.IndexFunc(c.names, func(name string) bool { return name != guest && c.all[name].leads() })]
	leaves := c.names[slices.IndexFunc(c.names, func(name string) bool { return name != guest && name != leader })]
	c.restart(guest, true)
	c.hold = map[[2]string][]Packet{{leader, guest}: {}}
	c.all[leader].Receive(guest, []byte(fmt.Sprintf(`{"hello":{"id":%d,"since":%d}}`, c.all[guest].id, c.all[leader].since)))
	c.drive(leader)
	c.run(1)
	require.Equal(t, 3, c.all[leader].Voters())
	require.False(t, c.all[leaves].Leave())
	c.run(freshTicks / 2)
	require.Equal(t, 3, c.all[leader].Voters())
	c.hold = nil
	c.run(1)
	c.leave(leaves)
	require.Equal(t, 2, c.all[guest].Voters())
}

// A voter at an address that is not configured any longer was replaced: it would be counted, and never be heard.
func TestHostThatReplacesAKilledOneTakesItsVote(t *testing.T) {
	c := newHosts(t, 1, 3)
	c.run(60)
	for i := range 4 {
		delete(c.all, c.names[2])
		c.names = []string{c.names[0], c.names[1], fmt.Sprintf("new%d:1", i)}
		c.restart(c.names[0], true)
		c.restart(c.names[1], true)
		c.restart(c.names[2], false)
		c.run(60)
		for _, name := range c.names {
			_, is := c.write(name)
			require.True(t, is)
			require.Equal(t, 3, c.all[name].Voters())
		}
	}
}

// Its hello makes it a voter when it has ended already. The last host would need it.
func TestHostThatLeavesAsItJoinsIsNotNeeded(t *testing.T) {
	for seed := range uint64(10) {
		c := newHosts(t, seed, 2)
		c.run(60)
		guest, last := c.names[0], c.names[1]
		c.leave(guest)
		c.restart(guest, true)
		for i := 0; c.all[guest].told == 0; i++ {
			require.Less(t, i, 100)
			c.all[guest].Tick()
			c.drive(guest)
			c.deliver(last)
			c.deliver(guest)
		}
		require.False(t, c.all[guest].isVoter())
		c.leave(guest)
		c.run(60)
		_, is := c.write(last)
		require.True(t, is, "seed %d", seed)
		require.Equal(t, 1, c.all[last].Voters())
	}
}

// deliver has the packets for one host arrive that are on their way.
func (c *hosts) deliver(to string) {
	packets, from := c.packets, c.from
	c.packets, c.from = nil, nil
	for i, p := range packets {
		if p.To == to {
			c.all[to].Receive(from[i], p.Data)
			c.drive(to)
		} else {
			c.packets, c.from = append(c.packets, p), append(c.from, from[i])
		}
	}
}

// What was said when a host left before says nothing about a vote that it has got since then.
func TestHostThatLeavesAgainHeedsNothingFromBefore(t *testing.T) {
	c := newHosts(t, 1, 3)
	c.run(60)
	guest, late := c.names[1], [2]string{c.names[2], c.names[1]}
	c.hold = map[[2]string][]Packet{late: {}}
	c.leave(guest)
	packets := c.hold[late]
	c.hold = nil
	c.restart(guest, true)
	c.run(60)
	h := c.all[guest]
	require.True(t, h.isVoter())
	require.False(t, h.Leave())
	for _, p := range packets {
		h.Receive(late[0], p.Data)
	}
	require.False(t, h.Leave())
}

// A host that starts again goes through its log. Nobody has asked for the answers.
func TestRequestsOfAnEarlierLifeAreNotAnswered(t *testing.T) {
	for _, n := range []int{1, 3} {
		c := newHosts(t, 1, n)
		c.run(60)
		_, is := c.write("h0:1")
		require.True(t, is)
		clear(c.answered)
		c.restart("h0:1", true)
		c.run(60)
		require.Empty(t, c.answered)
	}
}

// Whatever is lost while the leader leaves, the other one can do without it soon.
func TestLeaderThatLeavesIsNotNeeded(t *testing.T) {
	for seed := range uint64(100) {
		c := newHosts(t, seed, 2)
		c.run(60)
		leader, other := c.names[0], c.names[1]
		if c.all[other].leads() {
			leader, other = other, leader
		}
		c.lose = 0.4
		c.leave(leader)
		_, is := c.write(other)
		require.True(t, is, "seed %d", seed)
	}
}

// Otherwise they would go on beside the last one, which needs nobody. In each other schedule, one of them was killed before.
func TestHostsThatHaveLeftAreNotEnough(t *testing.T) {
	for seed := range uint64(100) {
		c := newHosts(t, seed, 3)
		c.run(60)
		last := c.names[seed%3]
		if seed%2 == 0 {
			delete(c.all, c.names[(seed+1)%3])
			c.run(2)
		}
		c.lose = float64(seed%4) * 0.1
		c.leaveBut(last, 1000)
		require.Len(t, c.all, 1, "seed %d", seed)
		for _, name := range c.names {
			c.cut[[2]string{name, last}], c.cut[[2]string{last, name}] = true, true
			if name != last {
				c.restart(name, true)
			}
		}
		c.lose = 0
		c.run(200)
		for _, name := range c.names {
			_, is := c.write(name)
			require.Equal(t, name == last, is, "seed %d", seed)
		}
	}
}

// The hello waits in the network until the host has become a voter by another one, has left, and another leader has come. A
// voter that is gone would be needed by the last host.
func TestLateHelloOfAHostThatHasLeftAddsNoVoter(t *testing.T) {
	for seed := range uint64(10) {
		c := newHosts(t, seed, 3)
		c.run(60)
		guest, leader, last := c.names[0], c.names[1], c.names[2]
		if c.all[guest].leads() {
			guest, leader = leader, guest
		} else if c.all[last].leads() {
			leader, last = last, leader
		}
		c.leave(guest)
		late := [2]string{guest, last}
		c.hold = map[[2]string][]Packet{late: {}}
		c.restart(guest, true)
		c.run(60)
		require.True(t, c.all[guest].isVoter(), "seed %d", seed)
		c.leave(guest)
		c.leave(leader)
		packets := c.hold[late]
		require.NotEmpty(t, packets)
		c.hold = nil
		require.True(t, c.all[last].leads())
		for _, p := range packets {
			c.all[last].Receive(guest, p.Data)
			c.drive(last)
		}
		_, is := c.write(last)
		require.True(t, is, "seed %d", seed)
		require.Equal(t, 1, c.all[last].Voters())

		c.restart(guest, true) // one that is there is added
		c.run(60)
		_, is = c.write(guest)
		require.True(t, is, "seed %d", seed)
	}
}

// Neither does a host that speaks for another one.
func TestStrangersChangeNothing(t *testing.T) {
	c := newHosts(t, 1, 3)
	c.run(60)
	h, other := c.all["h0:1"], c.all["h1:1"]
	before := h.State()
	step, err := proto.Marshal(&pb.Message{
		Type: pb.MessageType_MsgApp.Enum(), To: &h.id, From: &other.id, Term: proto.Uint64(99), Index: proto.Uint64(0), LogTerm: proto.Uint64(0),
	})
	require.NoError(t, err)
	forged, err := json.Marshal(frame{Raft: step})
	require.NoError(t, err)
	for _, data := range []string{"", "{}", `{"hello":{"id":7}}`, `{"hello":{"id":7,"fresh":true}}`, `{"left":7}`, `{"since":7}`, `{"raft":"AAAA"}`, string(forged)} {
		for _, from := range []string{"x:1", "", "h0:1", "h2:1"} {
			if from != "h2:1" || data == string(forged) {
				h.Receive(from, []byte(data))
			}
		}
	}
	c.drive("h0:1")
	require.Empty(t, c.packets)
	require.Equal(t, before, h.State())
	_, is := c.write("h0:1")
	require.True(t, is)
	h.Receive("h1:1", forged)
	require.Equal(t, uint64(99), h.node.BasicStatus().GetTerm(), "from its own host it counts")
}
