package main

import (
	"fmt"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"google.golang.org/protobuf/proto"
)

// The engine's defaults: each round a member sends its own state and that of some others to some members.
const (
	gossipInterval  = 300 * time.Millisecond
	gossipFanOut    = 3
	gossipMaxSend   = 50
	heartbeatExpiry = 20 * time.Second
)

// silenceTable simulates rounds of gossip among members of which none is missing, and shows for
// how long one hears nothing new of another: longer than the expiry, and the engine expels it.
func silenceTable(quick bool) string {
	var rows [][]string
	for _, n := range []int{100, 200, 300, 500, 1000} {
		if quick && n > 100 {
			continue
		}
		longest, expelled := silence(n, 400)
		rows = append(rows, []string{
			count(n), fmt.Sprintf("%.1f s", (time.Duration(longest) * gossipInterval).Seconds()), count(expelled),
		})
	}
	return markdown(0, []string{"members", "longest silence", "pairs beyond the expiry"}, rows)
}

// silence simulates rounds of gossip, and returns the longest time in rounds for which a member
// heard nothing new of another one, and for how many pairs that is longer than the expiry.
// The engine takes members from where a random step into a map leads: here from a random
// place in an order that each member has of its own.
func silence(n, rounds int) (longest, expelled int) {
	random := rand.New(rand.NewPCG(1, uint64(n)))
	known, heard := make([][]int32, n), make([][]int32, n) // the newest heartbeat of each other, and the round it came in
	order, silent := make([][]int, n), make([][]int32, n)
	for i := range n {
		known[i], heard[i], silent[i] = make([]int32, n), make([]int32, n), make([]int32, n)
		order[i] = random.Perm(n)
	}
	hear := func(to, of int, beat, round int32) {
		if of != to && beat > known[to][of] {
			silent[to][of] = max(silent[to][of], round-heard[to][of])
			known[to][of], heard[to][of] = beat, round
		}
	}
	for round := range int32(rounds) {
		for from := range n {
			known[from][from] = round
			for range gossipFanOut {
				to := (from + 1 + random.IntN(n-1)) % n
				hear(to, from, round, round)
				at := random.IntN(n)
				for i := range min(gossipMaxSend, n) {
					of := order[from][(at+i)%n]
					hear(to, of, known[from][of], round)
				}
			}
		}
	}
	for i := range n {
		for j := range n {
			if i == j {
				continue
			}
			gap := max(silent[i][j], int32(rounds)-heard[i][j])
			longest = max(longest, int(gap))
			if time.Duration(gap)*gossipInterval > heartbeatExpiry {
				expelled++
			}
		}
	}
	return longest, expelled
}

// gossipTable measures the engine's own gossip actor of one member.
func gossipTable(quick bool) string {
	var rows [][]string
	for _, n := range []int{10, 100, 300, 1000} {
		if quick && n > 100 {
			continue
		}
		g := newGossip(n)
		g.fill()
		round := g.measure()
		rows = append(rows, []string{
			count(n), rounded(round), percent(float64(round) / float64(gossipInterval)),
			megabytes(g.memory()), megabytes(g.topology), megabytes(g.topology * gossipMaxSend),
		})
	}
	return markdown(0, []string{"members", "a round", "of one CPU", "memory", "a topology", "in one message"}, rows)
}

func megabytes(n int) string { return fmt.Sprintf("%.3g MB", float64(n)/1e6) }

// gossip is the engine's gossip actor of one member. The other members are one process, which
// answers its messages in their place.
type gossip struct {
	system   *actor.ActorSystem
	pid      *actor.PID
	others   cluster.Members
	replies  chan struct{}
	before   int   // bytes alive before the actor was started
	topology int   // size of a topology
	sequence int64 // of the newest states of the others
	answers  int   // how many states of others are in an answer; -1: none answers
}

func newGossip(n int) *gossip {
	quiet := actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.DiscardHandler) })
	g := &gossip{system: actor.NewActorSystem(quiet), replies: make(chan struct{}, 1), answers: n}
	g.system.ProcessRegistry.RegisterAddressResolver(func(*actor.PID) (actor.Process, bool) { return g, true })
	topology := &cluster.ClusterTopology{}
	for i := range n {
		member := &cluster.Member{Id: fmt.Sprintf("%022d", i), Host: fmt.Sprintf("mcpactor-%d.mcpactor", i), Port: 8090, Kinds: []string{kind}}
		topology.Members = append(topology.Members, member)
	}
	g.topology = proto.Size(topology)
	g.others = topology.Members[1:]
	g.before = heap()
	g.pid = g.system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor {
		return cluster.NewGossipActor(time.Millisecond, topology.Members[0].Id, nil, gossipFanOut, gossipMaxSend, g.system)
	}))
	g.system.Root.Send(g.pid, topology)
	return g
}

// fill runs rounds until nearly each state was sent to each member. In the first ones the others
// send all states; in the following ones none answers, so that the rounds are quick.
func (g *gossip) fill() {
	for range 3 {
		g.round()
	}
	g.answers = -1
	n := len(g.others) + 1
	for range 5 * n * n / (gossipFanOut * min(gossipMaxSend, n)) { // e^-5 of the pairs are left
		g.round()
	}
	g.answers = min(gossipMaxSend, n-1)
}

// measure returns the time of a round: the shortest of some, since other programs disturb the others.
func (g *gossip) measure() time.Duration {
	shortest := time.Hour
	for range 20 {
		began := time.Now()
		g.round()
		shortest = min(shortest, time.Since(began))
	}
	return shortest
}

// memory returns how many bytes the actor keeps alive.
func (g *gossip) memory() int {
	defer runtime.KeepAlive(g)
	return heap() - g.before
}

// round does what the engine does every 300 ms.
func (g *gossip) round() {
	expired, left := cluster.NewGetGossipStateRequest(cluster.HeartbeatKey), cluster.NewGetGossipStateRequest(cluster.GracefullyLeftKey)
	beat := cluster.NewGossipStateKey(cluster.HeartbeatKey, &cluster.MemberHeartbeat{})
	for _, request := range []any{&expired, &left, &beat, &cluster.SendGossipStateRequest{}, &left} {
		g.system.Root.RequestWithCustomSender(g.pid, request, actor.NewPID("others:8090", "replies"))
		<-g.replies // the last one comes after the answers to what was sent were handled
	}
}

// SendUserMessage takes the replies to requests of round, and answers gossip.
func (g *gossip) SendUserMessage(_ *actor.PID, message any) {
	_, body, sender := actor.UnwrapEnvelope(message)
	if _, ok := body.(*cluster.GossipRequest); !ok {
		g.replies <- struct{}{}
		return
	}
	if g.answers < 0 {
		return
	}
	g.sequence++
	state := &cluster.GossipState{Members: map[string]*cluster.GossipMemberState{}}
	at := rand.IntN(len(g.others))
	for i := range min(g.answers, len(g.others)) {
		state.Members[g.others[(at+i)%len(g.others)].Id] = &cluster.GossipMemberState{
			Values: map[string]*cluster.GossipKeyValue{cluster.HeartbeatKey: {SequenceNumber: g.sequence}},
		}
	}
	g.system.Root.Send(sender, &cluster.GossipResponse{State: state})
}

// SendSystemMessage ignores messages such as Watch.
func (g *gossip) SendSystemMessage(*actor.PID, any) {}

// Stop has nothing to stop.
func (g *gossip) Stop(*actor.PID) {}

// heap returns the bytes that are alive.
func heap() int {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}
