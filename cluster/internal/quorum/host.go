// Package quorum keeps the [view.Register] of a cluster on its own hosts, with raft.
//
// Each host is a voter. A request is an entry of the log: the host that was asked answers when it applies the
// entry, which more than half of the hosts have then stored. The id of a voter is that of one life of its log,
// and never comes back: a host that has lost its log is a new voter, which the leader puts in the place of the old
// one at the same address. The first log begins when all configured hosts say that they have none.
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
	// helloTicks is how often a host that is no voter says so.
	helloTicks = 5
	// freshTicks is for how long what a host without a log has said counts.
	freshTicks = 4 * helloTicks
	// compactAfter is after how many entries the log is replaced by a snapshot.
	compactAfter = 512
	// maxMessage bounds the entries in a message, in bytes.
	maxMessage = 256 << 10
)

// State is what a host has stored. ID is that of its voter, and is never zero; the rest is empty in a host without a log.
type State struct {
	ID       uint64
	Hard     *pb.HardState
	Snapshot *pb.Snapshot
	Entries  []*pb.Entry
}

// Packet is what a host sends to another one. It may be lost.
type Packet struct {
	To   string // the address
	Data []byte
}

// Answered is the answer to a request of this host.
type Answered struct {
	Number uint64
	Answer view.Answer
}

// Output is what a driver does for a host, in this order: it stores Save, if there is any, sends the packets, and gives the
// answers to who has asked.
type Output struct {
	Save    *Save
	Packets []Packet
	Answers []Answered
}

// Save is what is new in the state of a host.
type Save struct {
	Hard     *pb.HardState // nil: as before
	Snapshot *pb.Snapshot  // nil: as before; otherwise it replaces all entries up to its index
	Entries  []*pb.Entry   // replace those with the same and higher indices
}

// Host is one voter. It is not safe for concurrent use.
type Host struct {
	self  string // its address
	hosts []string
	id    uint64

	node     *raft.RawNode
	store    *raft.MemoryStorage
	register view.Register
	voters   map[uint64]string // their addresses
	heard    map[uint64]string // likewise, of those who have sent something
	conf     *pb.ConfState
	applied  uint64 // the index of the last entry
	base     uint64 // that of the last snapshot
	changed  bool   // the voters, since then

	snapshots []uint64 // voters that were sent one since the last tick

	ticks     int
	leaves    bool
	leftAt    uint64             // the last entry when it began to leave
	handsOver bool               // it has asked another voter to lead
	left      bool               // one that remains says that it is no voter
	fresh     map[string]greeted // hosts without a log, by address
	waiting   *entry             // until there is a leader
	out       Output             // what was not given to the driver yet
}

// greeted is a hello that has come.
type greeted struct {
	id uint64
	at int // in ticks
}

type (
	// frame is the data of a packet.
	frame struct {
		From  string `json:"from"` // the address
		Raft  []byte `json:"raft,omitempty"`
		Hello *hello `json:"hello,omitempty"`
		Left  uint64 `json:"left,omitempty"` // a voter that is none any longer
	}
	// hello says that a host is no voter, or asks whether it is none any longer.
	hello struct {
		ID     uint64 `json:"id"`
		Fresh  bool   `json:"fresh"`            // it has no log
		Leaves uint64 `json:"leaves,omitempty"` // it does not want to be one: an entry at which it was
	}
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
	}
	// admission is the context of a change of the voters.
	admission struct {
		ID   uint64 `json:"id"`
		Host string `json:"host"`
	}
)

// NewHost returns the host at an address, which is one of hosts.
func NewHost(self string, hosts []string, state State) (*Host, error) {
	h := &Host{self: self, hosts: hosts, id: state.ID, store: raft.NewMemoryStorage(), voters: map[uint64]string{}, heard: map[uint64]string{}, conf: &pb.ConfState{}, fresh: map[string]greeted{}}
	if state.Snapshot != nil {
		if err := h.restore(state.Snapshot); err != nil {
			return nil, err
		}
	}
	if err := h.store.Append(state.Entries); err != nil {
		return nil, err
	}
	if state.Hard != nil {
		if err := h.store.SetHardState(state.Hard); err != nil {
			return nil, err
		}
	}
	var err error
	h.node, err = raft.NewRawNode(&raft.Config{
		ID: h.id, ElectionTick: electionTicks, HeartbeatTick: 1, Storage: h.store, Applied: h.applied, MaxSizePerMsg: maxMessage,
		MaxInflightMsgs: 64, CheckQuorum: true, PreVote: true, StepDownOnRemoval: true,
		Logger: &raft.DefaultLogger{Logger: log.New(io.Discard, "", 0)},
	})
	return h, err
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
	h.register, h.voters, h.conf = c.Register, c.Voters, s.GetMetadata().GetConfState()
	h.applied, h.base = s.GetMetadata().GetIndex(), s.GetMetadata().GetIndex()
	return nil
}

// Leads reports whether the host is the leader.
func (h *Host) Leads() bool { return h.node.BasicStatus().RaftState == raft.StateLeader }

// Lacks returns the hosts that are no voters, as far as is known: without a log, these are those that a first one waits for.
func (h *Host) Lacks() (all []string) {
	for _, host := range h.hosts {
		if g, greets := h.fresh[host]; host != h.self && !h.votes(host) && (!greets || h.ticks-g.at >= freshTicks) {
			all = append(all, host)
		}
	}
	return all
}

// votes reports whether a host has a voter.
func (h *Host) votes(host string) bool {
	return slices.Contains(slices.Collect(maps.Values(h.voters)), host)
}

// Led reports whether there is a leader.
func (h *Host) Led() bool { return h.node.BasicStatus().Lead != raft.None }

// Leave has the host be no voter any longer, so that the others are enough without it. It is called until it returns true: the
// host may end. Before that the others may need it to agree that it is gone: two voters are only enough if both run. The last
// voter remains one.
func (h *Host) Leave() (left bool) {
	if !h.leaves {
		h.leaves, h.left, h.leftAt = true, !h.isVoter(), h.applied
	}
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(h.voters)), func(id uint64) bool { return id == h.id })
	if h.left || len(others) == 0 {
		return true
	}
	switch next := h.nextLeader(others); {
	case !h.isVoter(): // the others may not know it yet
	case h.Leads() && next != 0 && !h.handsOver: // otherwise there is no leader for a while, and no lease is renewed
		h.handsOver = true
		h.node.TransferLeader(next)
	default:
		remove := pb.ConfChangeType_ConfChangeRemoveNode
		h.node.ProposeConfChange(&pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: &remove, NodeId: proto.Uint64(h.id)}}}) //nolint:errcheck // the next call tries again
	}
	for _, id := range others {
		h.send(h.voters[id], frame{Hello: &hello{ID: h.id, Leaves: h.leftAt}})
	}
	return false
}

// nextLeader returns the voter that has most of the log of this leader, of those that it has heard lately, or 0.
func (h *Host) nextLeader(others []uint64) (next uint64) {
	most := uint64(0)
	progress := h.node.Status().Progress
	for _, id := range others {
		if p := progress[id]; p.RecentActive && p.Match > most {
			next, most = id, p.Match
		}
	}
	return next
}

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
	h.propose()
	if h.leaves || h.isVoter() && h.Led() { // without a leader it may not know yet that it is a voter no longer
		return
	}
	if h.isFresh() && h.self == h.hosts[0] && h.bootstrap() {
		return
	}
	if h.ticks%helloTicks == 0 {
		for _, host := range h.hosts {
			if host != h.self {
				h.send(host, frame{Hello: &hello{ID: h.id, Fresh: h.isFresh()}})
			}
		}
	}
}

// isVoter reports whether the host is a voter.
func (h *Host) isVoter() bool { return h.voters[h.id] != "" }

// isFresh reports whether the host has no log.
func (h *Host) isFresh() bool {
	status := h.node.BasicStatus()
	last, _ := h.store.LastIndex()
	return last == 0 && status.GetTerm() == 0
}

// bootstrap begins the log if no host has one. Only the first host does it, so that there are never two logs.
func (h *Host) bootstrap() bool {
	voters := map[uint64]string{h.id: h.self}
	for _, host := range h.hosts {
		g, greets := h.fresh[host]
		switch {
		case host == h.self:
		case !greets || h.ticks-g.at >= freshTicks:
			return false
		default:
			voters[g.id] = host
		}
	}
	data, err := json.Marshal(content{Voters: voters})
	if err != nil {
		return false
	}
	s := &pb.Snapshot{Data: data, Metadata: &pb.SnapshotMetadata{
		Index: proto.Uint64(1), Term: proto.Uint64(1), ConfState: &pb.ConfState{Voters: slices.Sorted(maps.Keys(voters))},
	}}
	hard := &pb.HardState{Term: proto.Uint64(1), Vote: proto.Uint64(0), Commit: proto.Uint64(1)}
	begun, err := NewHost(h.self, h.hosts, State{ID: h.id, Hard: hard, Snapshot: s})
	if err != nil {
		return false
	}
	begun.ticks, begun.waiting = h.ticks, h.waiting
	begun.out = Output{Save: &Save{Hard: hard, Snapshot: s}}
	*h = *begun
	h.node.Campaign() //nolint:errcheck // the next tick tries again
	return true
}

// send adds a packet.
func (h *Host) send(to string, f frame) {
	f.From = h.self
	if data, err := json.Marshal(f); err == nil {
		h.out.Packets = append(h.out.Packets, Packet{to, data})
	}
}

// Receive takes a packet of another host. What does not come from a configured host, or is for an earlier life of this
// one, changes nothing.
func (h *Host) Receive(data []byte) {
	var f frame
	if json.Unmarshal(data, &f) != nil || f.From == h.self || !slices.Contains(h.hosts, f.From) {
		return
	}
	switch {
	case f.Left == h.id:
		h.left = h.leaves
		return
	case f.Hello != nil && f.Hello.Leaves != 0:
		if h.isVoter() && h.voters[f.Hello.ID] == "" && h.applied >= f.Hello.Leaves {
			h.send(f.From, frame{Left: f.Hello.ID})
		}
		return
	case f.Hello != nil:
		h.onHello(f.From, f.Hello)
		return
	}
	var m pb.Message
	if proto.Unmarshal(f.Raft, &m) != nil || m.GetTo() != h.id || m.GetFrom() == h.id || m.GetFrom() == 0 {
		return
	}
	h.heard[m.GetFrom()] = f.From
	h.node.Step(&m) //nolint:errcheck // it is as if it was lost
}

// onHello has a host that is no voter take the place of the one that was at its address.
func (h *Host) onHello(from string, m *hello) {
	if delete(h.fresh, from); m.Fresh {
		h.fresh[from] = greeted{m.ID, h.ticks}
	}
	if !h.Leads() || h.voters[m.ID] != "" || m.ID == 0 {
		return
	}
	add, remove := pb.ConfChangeType_ConfChangeAddNode, pb.ConfChangeType_ConfChangeRemoveNode
	change := &pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: &add, NodeId: proto.Uint64(m.ID)}}}
	for _, id := range slices.Sorted(maps.Keys(h.voters)) {
		if h.voters[id] == from {
			change.Changes = append(change.Changes, &pb.ConfChangeSingle{Type: &remove, NodeId: proto.Uint64(id)})
		}
	}
	change.Context, _ = json.Marshal(admission{m.ID, from})
	h.node.ProposeConfChange(change) //nolint:errcheck // the next hello tries again
}

// Ask has a request done. If it is not, there is no answer.
func (h *Host) Ask(number uint64, q *view.Request) {
	h.waiting = &entry{h.id, number, q}
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
	save := Save{Hard: rd.HardState, Entries: rd.Entries}
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
	if save.Hard != nil || save.Snapshot != nil || len(save.Entries) > 0 {
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
	to := cmp.Or(h.voters[m.GetTo()], h.heard[m.GetTo()]) // what says that it is a voter may be on its way
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
		if one.Origin == h.id {
			h.out.Answers = append(h.out.Answers, Answered{one.Number, answer})
		}
	case pb.EntryType_EntryConfChangeV2:
		var change pb.ConfChangeV2
		if proto.Unmarshal(e.GetData(), &change) != nil {
			return
		}
		var a admission
		if json.Unmarshal(change.GetContext(), &a) == nil {
			h.voters[a.ID] = a.Host
		}
		h.conf, h.changed = h.node.ApplyConfChange(&change), true
		for _, id := range slices.Sorted(maps.Keys(h.voters)) {
			if slices.Contains(h.conf.GetVoters(), id) || slices.Contains(h.conf.GetVotersOutgoing(), id) {
				continue
			}
			if h.isVoter() {
				h.send(h.voters[id], frame{Left: id})
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
	data, err := json.Marshal(content{h.register, h.voters})
	if err != nil {
		return nil
	}
	s, err := h.store.CreateSnapshot(h.applied, h.conf, data)
	if err != nil || h.store.Compact(h.applied) != nil {
		return nil
	}
	h.base = h.applied
	return s
}
