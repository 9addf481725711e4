// Package quorum keeps the [view.Register] of a cluster on its own hosts, with raft.
//
// Each host is a voter. A request is an entry of the log: the host that was asked answers when it applies the
// entry, which more than half of the hosts have then stored. The id of a voter is that of its log:
// a host that starts again with its log is the same voter, also after it has left. One that has lost its log, or keeps
// none, is a new voter with a new id, which the leader puts in the place of the old one at the same address. The
// first log begins when all configured hosts say that they have none.
//
// A [Host] decides, and a driver acts: it has no goroutine, and does no I/O. A [Log] keeps what a host must not
// forget.
package quorum

import (
	"cmp"
	"encoding/json"
	"io"
	"log"
	"maps"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/mcpactor/mcpactor/cluster/internal/view"
)

const (
	// electionTicks is for how many ticks a leader may be silent. Raft waits for up to twice as many.
	electionTicks = 5
	// compactAfter is after how many entries the log is replaced by a snapshot.
	compactAfter = 512
	// maxMessage bounds the entries in a message, in bytes.
	maxMessage = 256 << 10
)

// Answered is the answer to a request of this host.
type Answered struct {
	Number uint64
	Answer view.Answer
}

// Output is what a driver does for a host, in this order: it stores Save, if there is any, sends the packets, and gives the
// answers to who has asked.
type Output struct {
	Save    *State // what is new: the entries replace those with the same and higher indices, and a snapshot those up to its own
	Packets []Packet
	Answers []Answered
}

// Host is one voter. It is not safe for concurrent use.
type Host struct {
	self  string // its address
	hosts []string
	id    uint64
	life  uint64 // of this value: the log may have requests of an earlier one

	node     *raft.RawNode
	store    *raft.MemoryStorage
	register view.Register
	voters   map[uint64]string // their addresses
	heard    map[uint64]heard  // the last messages of raft
	conf     *pb.ConfState
	applied  uint64 // the index of the last entry
	base     uint64 // that of the last snapshot
	since    uint64 // that of the last change of the voters
	told     uint64 // that of the leader, to a host that is no voter
	changed  bool   // the voters, since the last snapshot

	snapshots []uint64 // voters that were sent one since the last tick

	ticks   int
	follows int // the last tick at which it did not lead
	hellos  hellos
	leaving *leaving // nil unless it does
	waiting *entry   // until there is a leader
	out     Output   // what was not given to the driver yet
}

type (
	// entry is a request in the log.
	entry struct {
		Origin  uint64        `json:"origin"`
		Number  uint64        `json:"number"`
		Request *view.Request `json:"request"`
	}
	// content is that of a snapshot.
	content struct {
		Register view.Register     `json:"register"`
		Voters   map[uint64]string `json:"voters"`
		Since    uint64            `json:"since"`
	}
	// heard is the last message of raft of a host, or the hello after which it becomes a voter.
	heard struct {
		from string
		at   int // in ticks
	}
)

// NewHost returns the host at an address, which is one of hosts.
func NewHost(self string, hosts []string, state State) (*Host, error) {
	h := &Host{self: self, hosts: hosts, id: state.ID, life: NewID(), voters: map[uint64]string{}, heard: map[uint64]heard{}, conf: &pb.ConfState{}, hellos: hellos{}}
	return h, h.begin(state)
}

// begin begins with what is stored.
func (h *Host) begin(state State) (err error) {
	h.store = raft.NewMemoryStorage()
	if state.Snapshot != nil {
		err = h.restore(state.Snapshot)
	}
	if err == nil {
		err = h.store.Append(state.Entries)
	}
	if err == nil && state.Hard != nil {
		err = h.store.SetHardState(state.Hard)
	}
	if err != nil {
		return err
	}
	h.node, err = raft.NewRawNode(&raft.Config{
		ID: h.id, ElectionTick: electionTicks, HeartbeatTick: 1, Storage: h.store, Applied: h.applied, MaxSizePerMsg: maxMessage,
		MaxInflightMsgs: 64, CheckQuorum: true, PreVote: true, StepDownOnRemoval: true,
		Logger: &raft.DefaultLogger{Logger: log.New(io.Discard, "", 0)},
	})
	return err
}

// restore takes a snapshot.
func (h *Host) restore(s *pb.Snapshot) error {
	var c content
	if err := json.Unmarshal(s.GetData(), &c); err != nil {
		return err
	}
	if err := h.store.ApplySnapshot(s); err != nil {
		return err
	}
	h.register, h.voters, h.since, h.conf = c.Register, c.Voters, c.Since, s.GetMetadata().GetConfState()
	h.applied, h.base = s.GetMetadata().GetIndex(), s.GetMetadata().GetIndex()
	return nil
}

// leads reports whether the host is the leader.
func (h *Host) leads() bool { return h.node.BasicStatus().RaftState == raft.StateLeader }

// Lacks returns the hosts that have neither said hello lately, as all do that know no leader, nor answered one.
func (h *Host) Lacks() (all []string) {
	for _, host := range h.hosts {
		if host != h.self && !h.hellos.lately(host, h.ticks) {
			all = append(all, host)
		}
	}
	return all
}

// Fresh returns the hosts without a log, as far as is known.
func (h *Host) Fresh() (all []string) {
	for _, host := range h.hosts {
		if host == h.self && h.isFresh() || h.hellos.fresh(host, h.ticks) != 0 {
			all = append(all, host)
		}
	}
	return all
}

// Led reports whether there is a leader, which was not removed since.
func (h *Host) Led() bool { return h.voters[h.node.BasicStatus().Lead] != "" }

// Voters returns how many voters there are, as far as the host knows, or 0 if it is none.
func (h *Host) Voters() int {
	if !h.isVoter() {
		return 0
	}
	return len(h.voters)
}

// Tick is called in equal intervals: [electionTicks] of them are shorter than a lease by far.
func (h *Host) Tick() {
	h.ticks++
	for _, to := range h.snapshots { // one that was lost is sent again after a heartbeat
		h.node.ReportSnapshot(to, raft.SnapshotFinish)
	}
	h.snapshots = nil
	h.node.Tick()
	if !h.leads() {
		h.follows = h.ticks
	}
	h.propose()
	if !h.wantsToVote() || h.isFresh() && h.self == h.hosts[0] && h.bootstrap() {
		return
	}
	if h.ticks%helloTicks == 0 {
		for _, host := range h.hosts {
			if host != h.self {
				h.greet(host)
			}
		}
	}
}

// wantsToVote reports whether the host says hello: without a leader, a voter may not know yet that it is one no longer.
func (h *Host) wantsToVote() bool { return h.leaving == nil && (!h.isVoter() || !h.Led()) }

// greet says hello to a host.
func (h *Host) greet(host string) {
	h.send(host, frame{Hello: &hello{ID: h.id, Fresh: h.isFresh(), Since: h.told}})
}

// isVoter reports whether the host is a voter.
func (h *Host) isVoter() bool { return h.voters[h.id] != "" }

// send adds a packet.
func (h *Host) send(to string, f frame) {
	if data, err := json.Marshal(f); err == nil {
		h.out.Packets = append(h.out.Packets, Packet{to, data})
	}
}

// Receive takes a packet of the host at an address. What does not come from a configured host, speaks for another one, or is
// for an earlier life of this one, changes nothing.
func (h *Host) Receive(from string, data []byte) {
	var f frame
	if json.Unmarshal(data, &f) != nil || from == h.self || !slices.Contains(h.hosts, from) {
		return
	}
	switch {
	case f.Left != 0:
		h.onLeft(f.Left, f.Since)
	case f.Since != 0:
		h.onSince(from, f.Since)
	case f.Hello != nil && f.Hello.Leaves != 0:
		h.onLeaves(from, f.Hello)
	case f.Hello != nil:
		h.onHello(from, f.Hello)
	case f.Led:
		h.hellos.hear(from, &hello{}, h.ticks)
	default:
		h.onRaft(from, f.Raft)
	}
}

// onRaft takes a message of raft.
func (h *Host) onRaft(from string, data []byte) {
	var m pb.Message
	if proto.Unmarshal(data, &m) != nil || m.GetTo() != h.id || m.GetFrom() == h.id || m.GetFrom() == 0 ||
		cmp.Or(h.voters[m.GetFrom()], from) != from {
		return
	}
	h.heard[m.GetFrom()] = heard{from, h.ticks}
	h.node.Step(&m) //nolint:errcheck // it is as if it was lost
}

// onHello has a host that is no voter take the place of the one that was at its address. One that has left, or that another one
// has replaced, is not there to vote: a hello from before the last change of the voters may have been in the network since then.
func (h *Host) onHello(from string, m *hello) {
	h.hellos.hear(from, m, h.ticks)
	if h.Led() {
		h.send(from, frame{Led: true})
	}
	if !h.leads() || h.voters[m.ID] != "" || m.ID == 0 {
		return
	}
	if m.Since != h.since {
		h.send(from, frame{Since: h.since})
		return
	}
	h.heard[m.ID] = heard{from, h.ticks}
	change := changeOf(pb.ConfChangeType_ConfChangeAddNode, m.ID)
	for _, id := range slices.Sorted(maps.Keys(h.voters)) {
		if h.voters[id] == from || !slices.Contains(h.hosts, h.voters[id]) {
			change = append(change, changeOf(pb.ConfChangeType_ConfChangeRemoveNode, id)...)
		}
	}
	h.node.ProposeConfChange(&pb.ConfChangeV2{Changes: change, Context: []byte(from)}) //nolint:errcheck // the next hello tries again
}

// changeOf returns a change of voters.
func changeOf(kind pb.ConfChangeType, ids ...uint64) (all []*pb.ConfChangeSingle) {
	for _, id := range ids {
		all = append(all, &pb.ConfChangeSingle{Type: &kind, NodeId: &id})
	}
	return all
}

// onSince says hello again, as the leader wants it.
func (h *Host) onSince(from string, since uint64) {
	if h.wantsToVote() {
		h.told = since
		h.greet(from)
	}
}

// Ask has a request done. If it is not, there is no answer.
func (h *Host) Ask(number uint64, q *view.Request) {
	h.waiting = &entry{h.life, number, q}
	h.propose()
}

// propose gives the last request to the leader, if there is one.
func (h *Host) propose() {
	if h.waiting == nil || !h.isVoter() || !h.Led() {
		return
	}
	data, err := json.Marshal(h.waiting)
	if err == nil {
		err = h.node.Propose(data)
	}
	if err == nil {
		h.waiting = nil
	}
}

// Ready returns what the driver is to do next, and false if that is nothing. It must have been done before the next call.
func (h *Host) Ready() (Output, bool) {
	if h.out.Save != nil || !h.node.HasReady() {
		return h.take()
	}
	rd := h.node.Ready()
	save := State{Hard: rd.HardState, Entries: rd.Entries}
	if !raft.IsEmptySnap(rd.Snapshot) {
		if h.restore(rd.Snapshot) == nil {
			save.Snapshot = rd.Snapshot
		}
	}
	h.store.Append(rd.Entries) //nolint:errcheck // it does not fail
	if rd.HardState != nil {
		h.store.SetHardState(rd.HardState) //nolint:errcheck // likewise
	}
	for _, m := range rd.Messages {
		h.sendRaft(m)
	}
	for _, e := range rd.CommittedEntries {
		h.apply(e)
	}
	h.node.Advance(rd)
	if h.changed || h.applied-h.base >= compactAfter { // a new voter takes no snapshot in which it is not one
		h.changed = false
		save.Snapshot = h.compact()
	}
	if rd.MustSync || save.Snapshot != nil { // which entries are committed is found again; a committed change of the voters is in a snapshot
		h.out.Save = &save
	}
	return h.take()
}

// take returns the output so far.
func (h *Host) take() (out Output, some bool) {
	out, h.out = h.out, Output{}
	return out, out.Save != nil || len(out.Packets) > 0 || len(out.Answers) > 0 || h.node.HasReady()
}

// sendRaft sends a message of raft.
func (h *Host) sendRaft(m *pb.Message) {
	to := cmp.Or(h.voters[m.GetTo()], h.heard[m.GetTo()].from) // what says that it is a voter may be on its way
	if m.GetType() == pb.MessageType_MsgSnap {
		h.snapshots = append(h.snapshots, m.GetTo())
	}
	data, err := proto.Marshal(m)
	if err == nil && to != "" && to != h.self {
		h.send(to, frame{Raft: data})
	}
}

// apply does an entry of the log.
func (h *Host) apply(e *pb.Entry) {
	h.applied = e.GetIndex()
	switch e.GetType() {
	case pb.EntryType_EntryNormal:
		var one entry
		if len(e.GetData()) == 0 || json.Unmarshal(e.GetData(), &one) != nil || one.Request == nil {
			return
		}
		answer := h.register.Do(one.Request)
		if one.Origin == h.life {
			h.out.Answers = append(h.out.Answers, Answered{one.Number, answer})
		}
	case pb.EntryType_EntryConfChangeV2:
		var change pb.ConfChangeV2
		if proto.Unmarshal(e.GetData(), &change) != nil {
			return
		}
		for _, one := range change.GetChanges() {
			if one.GetType() == pb.ConfChangeType_ConfChangeAddNode {
				h.voters[one.GetNodeId()] = string(change.GetContext())
			}
		}
		h.conf, h.changed, h.since = h.node.ApplyConfChange(&change), true, h.applied
		for _, id := range slices.Sorted(maps.Keys(h.voters)) {
			if slices.Contains(h.conf.GetVoters(), id) || slices.Contains(h.conf.GetVotersOutgoing(), id) {
				continue
			}
			if h.isVoter() {
				h.send(h.voters[id], frame{Left: id, Since: h.since})
			}
			delete(h.voters, id)
		}
	}
}

// State returns what a host needs to go on after it was stopped.
func (h *Host) State() State {
	hard, _, _ := h.store.InitialState()
	s, _ := h.store.Snapshot()
	state := State{ID: h.id, Hard: hard}
	if !raft.IsEmptySnap(s) {
		state.Snapshot = s
	}
	first, _ := h.store.FirstIndex()
	if last, _ := h.store.LastIndex(); last >= first {
		state.Entries, _ = h.store.Entries(first, last+1, 1<<62)
	}
	return state
}

// compact replaces the log by a snapshot.
func (h *Host) compact() *pb.Snapshot {
	data, _ := json.Marshal(content{h.register, h.voters, h.since}) // it has only texts, numbers and flags, and no error
	s, err := h.store.CreateSnapshot(h.applied, h.conf, data)
	if err != nil || h.store.Compact(h.applied) != nil {
		return nil
	}
	h.base = h.applied
	return s
}
