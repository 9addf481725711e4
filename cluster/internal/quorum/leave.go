package quorum

import (
	"cmp"
	"maps"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
)

// leaving is what a host that leaves knows.
type leaving struct {
	at        uint64 // an entry before its removal
	handsOver int    // from when on, in ticks, it may ask another voter to lead
	left      bool   // one that remains has said that it is no voter
}

// handOverTicks is for how long a leader that leaves waits for another one. Others that leave too may do so meanwhile.
const handOverTicks = 4 * electionTicks

// Leave has the host be no voter any longer, so that the others are enough without it. It is called until it returns true: the
// host may end. Before that the others may need it to agree that it is gone: two voters are only enough if both run. The last
// voter remains one.
func (h *Host) Leave() (left bool) {
	if h.leaving == nil { // one that is no voter may still become one by its hello
		h.leaving = &leaving{at: max(h.applied, h.told), left: !h.isVoter() && h.told == 0}
	}
	if h.leaving.left || h.isVoter() && len(h.voters) == 1 {
		return true
	}
	if _, known := h.silent(); known && h.leads() && h.ticks >= h.leaving.handsOver {
		h.leaving.handsOver = h.ticks + handOverTicks
		h.handOver()
	}
	for _, host := range h.hosts {
		if host != h.self {
			h.send(host, frame{Hello: &hello{ID: h.id, Leaves: h.leaving.at}})
		}
	}
	return false
}

// handOver has another voter lead, of those that were heard last the one that has most of the log. A leader cannot remove itself: the
// others may need its vote, which it gives to nobody who has less of the log.
func (h *Host) handOver() {
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(h.voters)), func(id uint64) bool { return id == h.id })
	progress := h.node.Status().Progress
	h.node.TransferLeader(slices.MaxFunc(others, func(a, b uint64) int {
		return cmp.Or(cmp.Compare(h.heard[a].at, h.heard[b].at), cmp.Compare(progress[a].Match, progress[b].Match))
	}))
}

// onLeaves has the leader remove a host that leaves, also one that is no voter yet, and tells the host when that is done. The voters that
// are silent are removed in the same change: without it these others might have no majority, and after two changes in a row they might
// have none if the host ends in between.
func (h *Host) onLeaves(from string, m *hello) {
	address, voter := h.voters[m.ID]
	switch {
	case voter && address != from:
	case h.isVoter() && !voter && h.since > m.Leaves:
		h.send(from, frame{Left: m.ID, Since: h.since})
	case h.leads():
		if silent, known := h.silent(); known {
			change := changeOf(pb.ConfChangeType_ConfChangeRemoveNode, append(silent, m.ID)...)
			h.node.ProposeConfChange(&pb.ConfChangeV2{Changes: change}) //nolint:errcheck // who leaves asks again
		}
	}
}

// silent returns the voters that the leader has not heard for freshTicks: they were killed, or are cut off. While one may be silent, it is
// not known yet: voters answer each tick.
func (h *Host) silent() (all []uint64, known bool) {
	for _, id := range slices.Sorted(maps.Keys(h.voters)) {
		switch at := h.heard[id].at; {
		case id == h.id || at > h.follows && h.ticks-at <= 1:
		case h.ticks-max(at, h.follows) < freshTicks:
			return nil, false
		default:
			all = append(all, id)
		}
	}
	return all, true
}

// onLeft notes that the others know that a host is no voter.
func (h *Host) onLeft(id, since uint64) {
	if h.leaving != nil && id == h.id && since > h.leaving.at {
		h.leaving.left = true
	}
}
