package table

import (
	"iter"
	"slices"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// index finds sessions by their servers and states.
type index struct {
	Serial  uint64            // of the last session
	groups  map[string]*group // by server; they stay when they are empty
	names   []string          // of groups, in order
	changes uint64            // of states
}

// group returns the group of a server, which it adds if there is none.
func (x *index) group(server string) *group {
	g := x.groups[server]
	if g == nil {
		g = &group{}
		x.groups[server] = g
		at, _ := slices.BinarySearch(x.names, server)
		x.names = slices.Insert(x.names, at, server)
	}
	return g
}

// add adds a session after all others of its server, without a state.
func (x *index) add(reg *Registration) {
	g := x.group(reg.Key.Server)
	x.Serial++
	reg.Serial, reg.group, reg.older = x.Serial, g, g.last
	if g.last == nil {
		g.first = reg
	} else {
		g.last.newer = reg
	}
	g.last = reg
}

// put notes the state of a session.
func (x *index) put(reg *Registration, state messages.State) {
	if reg.State() != state {
		x.changes++
		reg.stateSince = x.changes
		reg.group.states.Put(&reg.stateNode, admission.Rank(slices.Index(protocol.States[:], state)), reg)
	}
}

// remove removes a session. Its field newer stays valid: a cursor may point to the session.
func (x *index) remove(reg *Registration) {
	g := reg.group
	if reg.older == nil {
		g.first = reg.newer
	} else {
		reg.older.newer = reg.newer
	}
	if reg.newer == nil {
		g.last = reg.older
	} else {
		reg.newer.older = reg.older
	}
	reg.older = nil
	g.states.Remove(&reg.stateNode)
}

// matching returns the sessions of one server, or of all for "", in one state, or in any for "", and their number by state. They
// are ordered by state, and within a state by the name of the server.
func (x *index) matching(server string, in messages.State) (counts map[messages.State]int, all iter.Seq[*Registration]) {
	counts = map[messages.State]int{}
	var servers []string
	for _, name := range x.names {
		if server != "" && name != server {
			continue
		}
		servers = append(servers, name)
		for at, state := range protocol.States {
			if n := x.groups[name].states.Len(admission.Rank(at)); n > 0 && (in == "" || in == state) {
				counts[state] += n
			}
		}
	}
	return counts, func(yield func(*Registration) bool) {
		for at, state := range protocol.States {
			if counts[state] == 0 {
				continue
			}
			for _, name := range servers {
				for reg := range x.groups[name].states.Oldest(admission.Rank(at)) {
					if !yield(reg) {
						return
					}
				}
			}
		}
	}
}

// Describe adds the load of a server, and the number of its sessions by state, to its snapshot.
func (x *index) Describe(srv *messages.ServerSnapshot) {
	g := x.groups[srv.Name]
	if g == nil {
		return
	}
	srv.Load = g.load.Snapshot()
	for at, state := range protocol.States {
		if n := g.states.Len(admission.Rank(at)); n > 0 {
			if srv.States == nil {
				srv.States = map[messages.State]int{}
			}
			srv.States[state] = n
			srv.Sessions += n
		}
	}
}

// Cursor returns a cursor for the sessions of each server that is wanted.
func (x *index) Cursor(wanted func(server string) bool) Cursor {
	c := Cursor{upTo: x.Serial}
	for _, name := range x.names {
		if first := x.groups[name].first; first != nil && wanted(name) {
			c.next = append(c.next, first)
		}
	}
	return c
}
