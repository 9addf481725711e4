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
	// freshTicks is for how long what a host has said counts.
	freshTicks = 4 * helloTicks
)

// hellos are the last ones that have come, by the address of the host.
type hellos map[string]greeted

// greeted is a hello that has come.
type greeted struct {
	id uint64 // of a host without a log, or 0
	at int    // in ticks
}

// hear takes a hello.
func (all hellos) hear(from string, m *hello, now int) {
	g := greeted{at: now}
	if m.Fresh {
		g.id = m.ID
	}
	all[from] = g
}

// lately reports whether a host has said hello lately.
func (all hellos) lately(host string, now int) bool {
	g, greets := all[host]
	return greets && now-g.at < freshTicks
}

// fresh returns the id of a host that has said lately that it has no log, or 0.
func (all hellos) fresh(host string, now int) uint64 {
	if all.lately(host, now) {
		return all[host].id
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
		id := h.hellos.fresh(host, h.ticks)
		if id == 0 {
			return false
		}
		voters[id] = host
	}
	data, _ := json.Marshal(content{Voters: voters, Since: 1}) // it has only texts and numbers, and no error
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
