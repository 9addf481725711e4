package quorum

import (
	"maps"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// leaving is what a host that leaves knows.
type leaving struct {
	at        uint64 // the last entry when it began
	handsOver int    // from when on, in ticks, it may ask another voter to lead
	left      bool   // one that remains has said that it is no voter
}

// handOverTicks is for how long a leader that leaves waits for another one. Others that leave too may do so meanwhile.
const handOverTicks = 4 * electionTicks

// Leave has the host be no voter any longer, so that the others are enough without it. It is called until it returns true: the
// host may end. Before that the others may need it to agree that it is gone: two voters are only enough if both run. The last
// voter remains one.
func (h *Host) Leave() (left bool) {
	if h.leaving == nil {
		h.leaving = &leaving{at: h.applied, left: !h.isVoter()}
	}
	others := slices.DeleteFunc(slices.Sorted(maps.Keys(h.voters)), func(id uint64) bool { return id == h.id })
	if h.leaving.left || len(others) == 0 {
		return true
	}
	switch {
	case !h.isVoter(): // the others may not know it yet
	case h.leads(): // it cannot remove itself: the others may need its vote, which it gives to nobody who has less of the log
		if next := h.nextLeader(others); next != 0 && h.ticks >= h.leaving.handsOver {
			h.leaving.handsOver = h.ticks + handOverTicks
			h.node.TransferLeader(next)
		}
	default:
		remove := pb.ConfChangeType_ConfChangeRemoveNode
		h.node.ProposeConfChange(&pb.ConfChangeV2{Changes: []*pb.ConfChangeSingle{{Type: &remove, NodeId: proto.Uint64(h.id)}}}) //nolint:errcheck // the next call tries again
	}
	for _, id := range others {
		h.send(h.voters[id], frame{Hello: &hello{ID: h.id, Leaves: h.leaving.at}})
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

// onLeaves answers a host that leaves, once it is no voter.
func (h *Host) onLeaves(from string, m *hello) {
	if h.isVoter() && h.voters[m.ID] == "" && h.applied >= m.Leaves {
		h.send(from, frame{Left: m.ID})
	}
}

// onLeft notes that the others know that a host is no voter.
func (h *Host) onLeft(id uint64) {
	if h.leaving != nil && id == h.id {
		h.leaving.left = true
	}
}
