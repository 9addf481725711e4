package registry

import (
	"iter"
	"slices"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// registrationIndex lists and counts the sessions by server, scope and state. Each
// operation takes time that grows with the servers and with the sessions that it returns,
// and not with the other sessions.
type registrationIndex struct {
	groups  map[string]*group       // by server
	names   []string                // of groups, in order
	entries map[messages.Key]*entry // those of the registry
	serial  uint64                  // of the last session
	changes uint64                  // of states
}

// group is the sessions of one server. It stays when it is empty.
type group struct {
	first, last *registration                // in the order in which they were added
	states      admission.LRU[*registration] // by state, those that have been in it for longest first
	load        load
}

// group returns the group of a server, which it adds if there is none.
func (r *registrationIndex) group(server string) *group {
	g := r.groups[server]
	if g == nil {
		g = &group{}
		r.groups[server] = g
		at, _ := slices.BinarySearch(r.names, server)
		r.names = slices.Insert(r.names, at, server)
	}
	return g
}

// add adds a session.
func (r *registrationIndex) add(reg *registration) {
	g := r.group(reg.key.Server)
	r.serial++
	reg.serial, reg.group, reg.older = r.serial, g, g.last
	if g.last == nil {
		g.first = reg
	} else {
		g.last.newer = reg
	}
	g.last = reg
}

// setState notes the state of a session.
func (r *registrationIndex) setState(reg *registration, state messages.State) {
	if reg.state() != state {
		r.changes++
		reg.stateSince = r.changes
		reg.group.states.Put(&reg.stateNode, admission.Rank(slices.Index(protocol.States[:], state)), reg)
	}
}

// remove removes a session. Its field newer stays valid: a close command may point to the
// session.
func (r *registrationIndex) remove(reg *registration) {
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

// ofScope returns the sessions of a scope.
func (r *registrationIndex) ofScope(scope string) (all []*registration) {
	for _, server := range r.names {
		e := r.entries[messages.Key{Server: server, Scope: scope}]
		if e == nil {
			continue
		}
		all = append(all, e.draining...)
		if e.current != nil {
			all = append(all, e.current)
		}
	}
	return all
}

// matching returns the sessions that a filter selects, and their number by state. They are
// ordered by state, and within a state by the name of the server.
func (r *registrationIndex) matching(f inspected) (counts map[messages.State]int, all iter.Seq[*registration]) {
	counts = map[messages.State]int{}
	wanted := func(reg *registration) bool {
		return (f.server == "" || reg.key.Server == f.server) && (f.state == "" || reg.state() == f.state)
	}
	if f.scope != "" {
		var found []*registration
		for _, reg := range r.ofScope((messages.Key{Scope: f.scope}).Normal().Scope) {
			if wanted(reg) {
				counts[reg.state()]++
				found = append(found, reg)
			}
		}
		return counts, slices.Values(found)
	}
	var servers []string
	for _, name := range r.names {
		g := r.groups[name]
		if f.server != "" && name != f.server {
			continue
		}
		servers = append(servers, name)
		for at, state := range protocol.States {
			if n := g.states.Len(admission.Rank(at)); n > 0 && (f.state == "" || f.state == state) {
				counts[state] += n
			}
		}
	}
	return counts, func(yield func(*registration) bool) {
		for at, state := range protocol.States {
			if counts[state] == 0 {
				continue
			}
			for _, name := range servers {
				for reg := range r.groups[name].states.Oldest(admission.Rank(at)) {
					if !yield(reg) {
						return
					}
				}
			}
		}
	}
}

// cursor returns a cursor for the sessions of each server that is wanted.
func (r *registrationIndex) cursor(wanted func(server string) bool) cursor {
	c := cursor{upTo: r.serial}
	for _, name := range r.names {
		if first := r.groups[name].first; first != nil && wanted(name) {
			c.next = append(c.next, first)
		}
	}
	return c
}
