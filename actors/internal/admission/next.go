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
	if !g.queue.changed {
		return d, false
	}
	if d, found = g.slots.surplus(g.cfg.MaxWithoutSlot); found {
		return d, true
	}
	g.queue.retry()
	full := false
	for srv := range g.queue.servers.All() {
		if d, found = g.turnOf(srv, &full, now); found {
			return d, true
		}
	}
	if full {
		wanted, starts := 0, max(0, g.starts.free())
		for srv := range g.queue.servers.All() {
			n := srv.wanted(srv.Quota.Room(), now)
			if srv.starts != nil {
				n = min(n, starts)
				starts -= n
			}
			wanted += n
		}
		if s, _ := g.Sessions.victim(wanted); s != nil {
			return evict(s, messages.EvictCap)
		}
	}
	if g.queue.retries.Count > 0 {
		return Decision{Do: Continue}, true
	}
	g.queue.changed, g.queue.skipped = false, 0
	return d, false
}

// Pending reports whether there may be a decision, or another time to wake.
func (g *Gate) Pending() bool { return g.queue.changed || len(g.decided) > 0 }

// turnOf returns the decision for the turn of a server, if there is one. It sets full if only MaxSessions prevents a dial.
func (g *Gate) turnOf(srv *Server, full *bool, now time.Time) (d Decision, found bool) {
	if srv.StartRoom() == 0 {
		return d, false
	}
	for p := range srv.places.All() {
		if p.permits(now) == 0 {
			if g.queue.block(p, now); !g.queue.skip() {
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
				g.queue.stick(l)
				if !g.queue.skip() {
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
				g.queue.endTurn(l)
				return g.grant(l.sessions.First(), now), true
			}
			return d, false
		}
	}
	return d, false
}

// maxLines is how many lines of sessions are looked at to find out how many sessions to evict.
const maxLines = 64

// wanted returns how many sessions of a server could dial if they had slots, and at most limit. Those of
// tenants at their quota do not count. It looks at maxLines lines at most: further ones are counted later.
func (srv *Server) wanted(limit int, now time.Time) int {
	limit = min(limit, srv.StartRoom())
	n, looked, taken := 0, 0, map[*Tenant]int{}
	for p := range srv.places.All() {
		free := p.permits(now)
		for l := range p.lines.All() {
			if looked++; n >= limit || looked > maxLines {
				return min(n, limit)
			}
			dials := min(free, l.sessions.Count)
			if l.tenant != nil {
				dials = min(dials, l.tenant.Room()-taken[l.tenant])
				taken[l.tenant] += dials
			}
			n, free = n+dials, free-dials
		}
	}
	return min(n, limit)
}
