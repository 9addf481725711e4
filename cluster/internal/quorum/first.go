package quorum

import (
	"encoding/json"
	"maps"
	"slices"

	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

const (
	// helloTicks is how often a host that is no voter says so.
	helloTicks = 5
	// freshTicks is for how long what a host without a log has said counts.
	freshTicks = 4 * helloTicks
)

// freshHosts are the hosts that have said that they have no log, by address.
type freshHosts map[string]greeted

// greeted is a hello that has come.
type greeted struct {
	id uint64
	at int // in ticks
}

// hear takes a hello.
func (f freshHosts) hear(from string, m *hello, now int) {
	if delete(f, from); m.Fresh {
		f[from] = greeted{m.ID, now}
	}
}

// id returns the id of a host that has said so lately, or 0.
func (f freshHosts) id(host string, now int) uint64 {
	if g, greets := f[host]; greets && now-g.at < freshTicks {
		return g.id
	}
	return 0
}

// isFresh reports whether the host has no log.
func (h *Host) isFresh() bool {
	status := h.node.BasicStatus()
	last, _ := h.store.LastIndex()
	return last == 0 && status.GetTerm() == 0
}

// bootstrap begins the log if no host has one. Only the first host does it, so that there are never two logs.
func (h *Host) bootstrap() bool {
	voters := map[uint64]string{h.id: h.self}
	for _, host := range h.hosts[1:] {
		id := h.fresh.id(host, h.ticks)
		if id == 0 {
			return false
		}
		voters[id] = host
	}
	data, err := json.Marshal(content{Voters: voters})
	if err != nil {
		return false
	}
	first := State{
		ID:   h.id,
		Hard: &pb.HardState{Term: proto.Uint64(1), Vote: proto.Uint64(0), Commit: proto.Uint64(1)},
		Snapshot: &pb.Snapshot{Data: data, Metadata: &pb.SnapshotMetadata{
			Index: proto.Uint64(1), Term: proto.Uint64(1), ConfState: &pb.ConfState{Voters: slices.Sorted(maps.Keys(voters))},
		}},
	}
	if h.begin(first) != nil {
		return false
	}
	h.out = Output{Save: &first}
	h.node.Campaign() //nolint:errcheck // the next tick tries again
	return true
}
