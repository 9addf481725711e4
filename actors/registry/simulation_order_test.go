package registry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// order is what a simulation knows of the order in which a supervisor evicts sessions, and lets them dial. It looks at the
// sessions after each step.
type order struct {
	used   map[*table.Registration]int // the step in which a session was used last
	queued map[*table.Registration]int // the step in which it was queued
	looks  map[*table.Registration]seen
	passed map[turns]int // how often one was served since it was the turn of the other

	wasDown   map[*admission.Place]bool    // those that wait there may have changed their order
	abandoned map[*table.Registration]bool // those whose dial has ended because it was abandoned, which is no use
}

// seen is what changes when a session is used.
type seen struct {
	calls       uint64
	outstanding int
	dialing     bool
	dialedAt    time.Time
	pinned      bool
	held        bool
	mayDial     bool      // it is queued, and nothing but the turns of others keeps it from a dial
	calledAt    time.Time // when it got its last call, or the last one left it
}

// turns are a server, a place or a line that waits, and one beside it that is served.
type turns struct{ waits, served string }

// mostPassed is how often each other one of the same rank may be served before it is one's turn: once, and once more if it
// was looked at again meanwhile, because something has changed there.
const mostPassed = 2

// sessions returns the sessions of a supervisor in the order of their spawning.
func (p *supervisor) sessions() []*table.Registration {
	return slices.SortedFunc(p.registry.table.All(), func(a, b *table.Registration) int { return cmp.Compare(a.Serial, b.Serial) })
}

// use notes that a session is used, which checkOrder does not see.
func (p *supervisor) use(reg *table.Registration) {
	if reg != nil {
		p.order.used[reg] = p.s.Steps
	}
}

// newOrder returns the order of a supervisor without sessions.
func newOrder() order {
	return order{map[*table.Registration]int{}, map[*table.Registration]int{}, map[*table.Registration]seen{}, map[turns]int{}, map[*admission.Place]bool{}, map[*table.Registration]bool{}}
}

// checkOrder looks at what a step has changed.
func (p *supervisor) checkOrder() {
	o, all := &p.order, p.sessions()
	for _, reg := range all {
		if reg.Place.Endpoint.Down {
			o.wasDown[reg.Place] = true
		}
		before := o.looks[reg]
		now := seen{reg.Calls, reg.Outstanding, reg.Dialing, reg.DialedAt, reg.Pinned, reg.Held, p.mayDial(reg, all), before.calledAt}
		if now.calls != before.calls || now.outstanding != before.outstanding {
			now.calledAt = time.Now()
		}
		if o.abandoned[reg] && before.dialing && !now.dialing {
			before.dialing = now.dialing
			delete(o.abandoned, reg)
		}
		unlike := now
		if unlike.mayDial = before.mayDial; unlike != before && !reg.Draining {
			o.used[reg] = p.s.Steps
		}
		o.looks[reg] = now
		switch _, was := o.queued[reg]; {
		case reg.Queued() && !was:
			o.queued[reg] = p.s.Steps
		case was && !reg.Queued():
			if reg.Dialing && !before.dialing && before.mayDial {
				p.checkTurn(reg, all)
			}
			delete(o.queued, reg)
		}
	}
	waits := map[string]bool{}
	for _, reg := range all {
		if o.looks[reg].mayDial {
			for _, group := range groupsOf(reg) {
				waits[group] = true
			}
		}
	}
	maps.DeleteFunc(o.passed, func(t turns, _ int) bool { return !waits[t.waits] })
	gone := func(reg *table.Registration) bool { return p.registry.table.WithPID(reg.PID) != reg }
	maps.DeleteFunc(o.used, func(reg *table.Registration, _ int) bool { return gone(reg) })
	maps.DeleteFunc(o.queued, func(reg *table.Registration, _ int) bool { return gone(reg) })
	maps.DeleteFunc(o.abandoned, func(reg *table.Registration, _ bool) bool { return gone(reg) })
	maps.DeleteFunc(o.looks, func(reg *table.Registration, _ seen) bool { return gone(reg) })
}

// mayDial reports whether a session is queued, and could dial now if it were its turn.
func (p *supervisor) mayDial(reg *table.Registration, all []*table.Registration) bool {
	if !reg.Queued() || reg.Place.Endpoint.Down || reg.Server.Turns.Quota.Room() == 0 || reg.Tenant != nil && reg.Tenant.Room() == 0 {
		return false
	}
	dials, starts := 0, 0
	for _, other := range all {
		if other.Dialing && other.Place == reg.Place {
			dials++
		}
		if other.Dialing && other.Server.Command != "" {
			starts++
		}
	}
	return dials < reg.Server.Resolved.MaxDials && (reg.Server.Command == "" || starts < startsOfOne)
}

// groupsOf returns the names of those that take turns for a session: its server, its place and its line.
func groupsOf(reg *table.Registration) [3]string {
	server := fmt.Sprintf("%s as %p", reg.Server.Name, reg.Server.Turns) // a reload makes another one
	place := fmt.Sprintf("%s at %p", server, reg.Place)
	return [3]string{server, place, fmt.Sprintf("%s of %p", place, reg.Tenant)}
}

// checkTurn checks that it was the turn of a session that dials. In its line it was the first. The others of a rank have
// waited for a bounded number of turns.
func (p *supervisor) checkTurn(reg *table.Registration, all []*table.Registration) {
	mine := groupsOf(reg)
	served := map[string]bool{}
	for _, other := range all {
		theirs := groupsOf(other)
		was, queued := p.order.queued[other]
		if other == reg || !queued || !other.Queued() || !p.order.looks[other].mayDial {
			continue
		}
		if theirs == mine && was < p.order.queued[reg] && !p.order.wasDown[reg.Place] {
			p.s.violate("not its turn", "%s dials before %s, which has waited for longer", reg.Key, other.Key)
		}
		for i, group := range theirs {
			isBeside := i == 0 || theirs[i-1] == mine[i-1]
			if isBeside && group != mine[i] && !served[group] {
				served[group] = true
				turn := turns{group, mine[i]}
				if p.order.passed[turn]++; p.order.passed[turn] > mostPassed {
					p.s.violate("not its turn", "%s waits, and others are served again and again: %s", other.Key, reg.Key)
				}
			}
		}
	}
	maps.DeleteFunc(p.order.passed, func(t turns, _ int) bool { return slices.Contains(mine[:], t.waits) })
}

// checkEviction checks that the session that was evicted was idle for the whole timeout, or is the least recently used one.
func (p *supervisor) checkEviction(e *messages.SessionEvicted) {
	entry := p.registry.table.Entry(e.Key)
	if entry == nil || len(entry.Draining) == 0 {
		return
	}
	evicted := entry.Draining[len(entry.Draining)-1]
	if e.Reason == messages.EvictIdle {
		if idle := time.Since(p.order.looks[evicted].calledAt); evicted.Outstanding > 0 || idle < p.s.cfg.IdleTimeout {
			p.s.violate("a session was not idle for the whole timeout", "%s was evicted after %v, with %d calls", evicted.Key, idle, evicted.Outstanding)
		}
		return
	}
	for _, other := range p.sessions() {
		isBeside := other.Held && !other.Draining && !other.Pinned && other.Outstanding == 0 && !p.controlled[other.Key]
		switch e.Reason {
		case messages.EvictServerCap:
			isBeside = isBeside && other.Server.Turns.Quota == evicted.Server.Turns.Quota
		case messages.EvictTenantQuota:
			isBeside = isBeside && other.Tenant == evicted.Tenant
		}
		if isBeside && (evicted.Outstanding > 0 || p.order.used[other] < p.order.used[evicted]) && p.order.used[other] < p.s.Steps {
			p.s.violate("the least recently used idle session stays", "%s was evicted: %s was used later, or had calls", evicted.Key, other.Key)
		}
	}
}
