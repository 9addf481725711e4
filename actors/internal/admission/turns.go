package admission

import (
	"math"
	"time"

	"github.com/mcpactor/mcpactor/messages"
)

// Next returns the next decision, if there is one. The time it takes grows with the servers whose
// sessions wait for a slot, and not with the sessions, the places or the tenants: if there is too much to
// look at, it decides to continue in another step.
func (g *Gate) Next(now time.Time) (d Decision, found bool) {
	if len(g.decided) > 0 {
		d, g.decided = g.decided[0], g.decided[1:]
		return d, true
	}
	if !g.changed {
		return d, false
	}
	if d, found = g.surplus(); found {
		return d, true
	}
	g.retry()
	full := false
	for srv := range g.waiting.All() {
		if d, found = g.turnOf(srv, &full, now); found {
			return d, true
		}
	}
	if full {
		wanted, starts := 0, max(0, g.starts.free())
		for srv := range g.waiting.All() {
			n := srv.wanted(srv.Quota.Room(), now)
			if srv.command {
				n = min(n, starts)
				starts -= n
			}
			wanted += n
		}
		if s, _ := g.Sessions.victim(wanted); s != nil {
			return evict(s, messages.EvictCap)
		}
	}
	if g.freed.Count > 0 {
		return Decision{Do: Continue}, true
	}
	g.changed, g.looks = false, 0
	return d, false
}

// maxLooks is how many places and lines one step looks at in vain.
const maxLooks = 64

// look counts a place or a line that was looked at in vain. It returns false if those are enough for one step.
func (g *Gate) look() bool {
	g.looks = (g.looks + 1) % maxLooks
	return g.looks > 0
}

// retry gives turns to lines that were stuck, and whose tenant may have a slot now: to maxLooks of them, and to
// others when these have not used it up.
func (g *Gate) retry() {
	n := 0
	for t := range g.freed.All() {
		for l := range t.stuck.All() {
			if n++; n > maxLooks {
				return
			}
			l.unstick()
			g.arrange(l)
		}
		g.freed.Remove(&t.freed)
	}
}

// evict returns the decision to evict a session.
func evict(s *Session, reason messages.EvictReason) (Decision, bool) {
	return Decision{Do: Evict, Session: s, Reason: reason}, true
}

// surplus evicts a session although no other one needs its slot: there are too many without a slot, or
// a reload has lowered a quota.
func (g *Gate) surplus() (Decision, bool) {
	if last := g.rested; last != nil {
		if g.Sessions.LRU.Len(NoSlot) > g.cfg.MaxWithoutSlot {
			return evict(g.oldestWithoutSlot(last), messages.EvictCap)
		}
		g.rested = nil
	}
	for srv := range g.reduced.All() {
		if srv.Quota.excess() > 0 {
			if s := srv.Quota.LRU.First(UnusedSlot); s != nil { // busy ones stay until they are idle
				return evict(s, messages.EvictServerCap)
			}
		}
		g.reduced.Remove(&srv.reduced)
	}
	return Decision{}, false
}

// oldestWithoutSlot returns the least recently used session without a slot: of the tenant of the latest
// one if it has another one, and else of all.
func (g *Gate) oldestWithoutSlot(latest *Session) *Session {
	if latest.Tenant != nil {
		for s := range latest.Tenant.LRU.Oldest(NoSlot) {
			if s != latest {
				return s
			}
		}
	}
	return g.Sessions.LRU.First(NoSlot)
}

// turnOf returns what the turn of a server comes to. full is set if only a slot of all sessions is missing.
func (g *Gate) turnOf(srv *Server, full *bool, now time.Time) (d Decision, found bool) {
	if srv.StartRoom() == 0 {
		return d, false
	}
	for p := range srv.places.All() {
		if p.permits(now) == 0 {
			if g.block(p, now); !g.look() {
				return Decision{Do: Continue}, true
			}
			continue
		}
		for l := range p.lines.All() {
			if t := l.tenant; t != nil && t.Room() == 0 {
				s, starved := t.victim(min(p.permits(now), l.sessions.Count))
				if s != nil {
					return evict(s, messages.EvictTenantQuota)
				}
				t.starved = starved
				g.stick(l)
				if !g.look() {
					return Decision{Do: Continue}, true
				}
				continue
			}
			switch {
			case srv.Quota.Room() == 0:
				if s, _ := srv.Quota.victim(srv.wanted(math.MaxInt, now)); s != nil {
					return evict(s, messages.EvictServerCap)
				}
			case g.Sessions.Room() == 0:
				*full = true
			default:
				return g.nextOf(l, now), true
			}
			return d, false
		}
	}
	return d, false
}

// nextOf lets the first session of a line dial. Its server, its place and its line go behind the others.
func (g *Gate) nextOf(l *line, now time.Time) Decision {
	p := l.place
	g.waiting.Remove(&p.server.turn)
	p.server.places.Remove(&p.turn)
	p.lines.Remove(&l.turn)
	return g.grant(l.sessions.First(), now)
}

// grant gives a session a slot and its permits.
func (g *Gate) grant(s *Session, now time.Time) Decision {
	p := s.Place
	g.dequeue(s)
	if !s.Held {
		s.count(1)
	}
	p.dialing++
	s.Dialing, s.DialedAt, s.lent = true, now, false
	s.Probing = p.Endpoint.Down && !s.Cleanup
	switch {
	case s.Probing:
		g.beginProbe(s, now)
	case s.Cleanup: // it is not a probe, and may take long: the next probe does not wait for it
		if next := now.Add(MinProbeInterval); next.After(p.Endpoint.Next) {
			p.Endpoint.Next = next
			g.recall(p.Endpoint)
		}
	}
	if p.server.command {
		s.start = g.starts.begin(p.server, now)
	}
	g.use(s)
	return Decision{Do: Dial, Session: s}
}

// stick takes a line out of turn, until its tenant may have a slot. Other lines of the tenant that are stuck need
// not be looked at before.
func (g *Gate) stick(l *line) {
	g.freed.Remove(&l.tenant.freed)
	l.tenant.stuck.Push(&l.stuck, l)
	g.arrange(l)
}

// block takes a place without a permit out of turn, until something changes at its endpoint. If that is
// the next probe, Wake says when.
func (g *Gate) block(p *Place, now time.Time) {
	p.blocked = true
	g.arrangePlace(p)
	if ep := p.Endpoint; ep.Down && ep.Next.After(now) {
		g.probes.Set(&ep.wake, ep.Next)
	}
}
