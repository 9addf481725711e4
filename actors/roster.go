package actors

import (
	"iter"
	"maps"
	"slices"

	"github.com/mcpactor/mcpactor/messages"
)

// roster lists the children of the registry by server, scope and state, and counts
// them. What it is told, and what it is asked, takes time that grows with the number
// of servers and of the children that are asked for, and not with that of the others.
type roster struct {
	groups map[string]*group // by server
	scopes map[string]map[*child]struct{}
	serial uint64 // of the last child
}

// group is the children of one server. It stays when the last one is removed.
type group struct {
	first, last *child      // in the order in which they were added
	states      lru[*child] // by state, those first that have been in it for longest
}

// states are the states of a child by their rank in a group. In this order they are
// reported when not all are asked for.
var states = [maxRanks]messages.State{
	1: messages.StateDraining, 2: messages.StateBroken, 3: messages.StateConnecting, 4: messages.StateWaiting, 5: messages.StateReady,
}

// add takes in a child.
func (r *roster) add(ch *child) {
	g := r.groups[ch.key.Server]
	if g == nil {
		g = &group{}
		r.groups[ch.key.Server] = g
	}
	r.serial++
	ch.serial, ch.group, ch.older = r.serial, g, g.last
	if g.last == nil {
		g.first = ch
	} else {
		g.last.newer = ch
	}
	g.last = ch
	if r.scopes[ch.key.Scope] == nil {
		r.scopes[ch.key.Scope] = map[*child]struct{}{}
	}
	r.scopes[ch.key.Scope][ch] = struct{}{}
}

// enter notes the state that a child is in from now on.
func (r *roster) enter(ch *child, state messages.State) {
	if ch.state() != state {
		ch.group.states.put(&ch.stage, rank(slices.Index(states[:], state)), ch)
	}
}

// state returns the state of the child, or "" when it was removed.
func (ch *child) state() messages.State { return states[ch.stage.rank] }

// remove takes out a child. It keeps the one after it: a sweep may stand here.
func (r *roster) remove(ch *child) {
	g := ch.group
	if ch.older == nil {
		g.first = ch.newer
	} else {
		ch.older.newer = ch.newer
	}
	if ch.newer == nil {
		g.last = ch.older
	} else {
		ch.newer.older = ch.older
	}
	ch.older = nil
	g.states.remove(&ch.stage)
	delete(r.scopes[ch.key.Scope], ch)
	if len(r.scopes[ch.key.Scope]) == 0 {
		delete(r.scopes, ch.key.Scope)
	}
}

// matching yields the children that a filter lets through, and counts them by state
// first. Those of one server come together, by name, within each state.
func (r *roster) matching(f *messages.Inspect) (counts map[messages.State]int, all iter.Seq[*child]) {
	counts = map[messages.State]int{}
	wanted := func(ch *child) bool {
		return (f.Server == "" || ch.key.Server == f.Server) && (f.State == "" || ch.state() == f.State)
	}
	if f.Scope != "" { // there are as many as servers
		var found []*child
		for ch := range r.scopes[(messages.Key{Scope: f.Scope}).Normal().Scope] {
			if wanted(ch) {
				counts[ch.state()]++
				found = append(found, ch)
			}
		}
		return counts, slices.Values(found)
	}
	var servers []string
	for name, g := range r.groups {
		if f.Server != "" && name != f.Server {
			continue
		}
		servers = append(servers, name)
		for at, state := range states {
			if n := g.states.len(rank(at)); n > 0 && (f.State == "" || f.State == state) {
				counts[state] += n
			}
		}
	}
	slices.Sort(servers)
	return counts, func(yield func(*child) bool) {
		for at, state := range states {
			if counts[state] == 0 {
				continue
			}
			for _, name := range servers {
				for ch := range r.groups[name].states.oldest(rank(at)) {
					if !yield(ch) {
						return
					}
				}
			}
		}
	}
}

// firsts returns the first child of each server that is wanted.
func (r *roster) firsts(wanted func(server string) bool) (firsts []*child) {
	for _, name := range slices.Collect(maps.Keys(r.groups)) {
		if first := r.groups[name].first; first != nil && wanted(name) {
			firsts = append(firsts, first)
		}
	}
	return firsts
}
