package admission

import (
	"maps"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// NewServer returns a server. The address is "" if a function of the user returns one for each session. command
// is true if a dial starts a process.
func (g *Gate) NewServer(name, address string, command bool) *Server {
	srv := &Server{Quota: g.slots.ofServer(name), others: map[string]*Place{}}
	srv.Home = g.endpoints.newPlace(srv, address)
	srv.Home.users++
	if command {
		srv.starts = &serverStarts{all: &g.starts, home: &srv.Home.Endpoint.Outage}
	}
	return srv
}

// SetLimits sets how many sessions of a server may be open, where 0 is no bound, and how many may dial
// at one place.
func (g *Gate) SetLimits(srv *Server, maxSessions, maxDials int) {
	srv.Quota.SetLimit(maxSessions)
	srv.maxDials = maxDials
	g.slots.reduce(srv)
	for _, address := range slices.Sorted(maps.Keys(srv.others)) {
		g.giveOut(srv.others[address])
	}
	g.giveOut(srv.Home)
}

// Remove notes that a server is not configured any more. Its sessions stay.
func (g *Gate) Remove(srv *Server) { g.endpoints.leave(srv.Home) }

// Join adds a session of a server, without a slot. tenant may be nil.
func (g *Gate) Join(s *Session, srv *Server, tenant *Tenant) {
	s.Place, s.Tenant = srv.Home, tenant
	srv.Home.users++
	s.quotas[0].of, s.quotas[1].of = &g.Sessions, srv.Quota
	if tenant != nil {
		s.quotas[2].of = &tenant.Quota
	}
}

// Leave removes a session. Its slot is free once no control uses it.
func (g *Gate) Leave(s *Session) {
	if !s.Draining {
		g.Drain(s)
	}
	g.queue.remove(s)
	g.returnPermits(s)
	g.slots.giveBack(s)
	g.endpoints.leave(s.Place)
}

// Use makes a session the most recently used one. idle says that it has no calls.
func (g *Gate) Use(s *Session, idle bool) {
	s.idle = idle
	g.slots.use(s)
}

// Pin keeps a session from being evicted, or ends that.
func (g *Gate) Pin(s *Session, pinned bool) {
	s.pin(pinned)
	g.slots.use(s)
}

// Drain takes a session out of its line and out of the order of eviction. Its slot and its permit stay in
// use until it leaves.
func (g *Gate) Drain(s *Session) {
	g.queue.remove(s)
	s.onlyControls = false
	s.drain()
}

// Want queues a session for a dial. If it still has its slot, as after a fault, and there is a permit, it
// dials at once. So does one whose control uses its slot: the dial takes over that connection.
//
// While the server is down, a session that has not probed yet goes first, and one that finds nobody waiting may probe soon.
func (g *Gate) Want(s *Session, now time.Time) {
	s.open = false
	if s.Held && (s.controls > 0 || s.Place.permits(now) > 0) {
		g.decided = slices.Insert(g.decided, 0, g.grant(s, now)) // it must not wait until it is outdated
		return
	}
	g.slots.giveBack(s)
	ep := s.Place.Endpoint
	first := ep.Down && !s.Probing && !s.Cleanup
	if soon := ep.ProbedAt.Add(MinProbeInterval); first && ep.queued == 0 && soon.Before(ep.Next) && !g.cfg.FailFast {
		ep.Next = soon
	}
	g.queue.push(s, first)
}

// Rest takes back the slot of a session that has no connection, and may not or will not dial yet. If controls
// use it, it stays until they have ended, and may be evicted.
func (g *Gate) Rest(s *Session) {
	s.open = false
	g.queue.remove(s)
	g.slots.giveBack(s)
}

// Idle does what Rest does, for a session that will dial only for its next call. If there are too many
// without a slot, one is evicted.
func (g *Gate) Idle(s *Session) {
	s.Probing = false
	g.Rest(s)
	g.slots.use(s)
	g.slots.rested, g.queue.changed = s, true
}

// Opened notes that a dial has succeeded.
func (g *Gate) Opened(s *Session) {
	g.returnPermits(s)
	s.Probing, s.open = false, true
	g.slots.use(s)
}

// Lost notes that a session has no connection, because that broke or because the dial has failed. It keeps its
// slot until Want or Rest.
func (g *Gate) Lost(s *Session) {
	s.open = false
	g.queue.remove(s)
	g.returnPermits(s)
	g.slots.use(s)
}

// Abandoned notes that a session has ended its dial, as it was told to.
func (g *Gate) Abandoned(s *Session, now time.Time) {
	if s.Probing {
		s.Place.Endpoint.Next = now
	}
	g.returnPermits(s)
}

// Up notes that the server of a session has answered. All sessions that wait there may dial. Other probes are
// abandoned and dial again: they may hang at a network address that the server has left.
func (g *Gate) Up(s *Session, now time.Time) {
	ep := s.Place.Endpoint
	wasDown := ep.Down
	if ep.Answered(now); !wasDown {
		ep.noteHealth()
		return
	}
	for _, probe := range ep.Probes {
		if probe != s {
			g.decide(Decision{Do: Abandon, Session: probe})
		}
	}
	ep.Probes = nil
	g.healthChanged(ep)
}

// Failed notes that the last dial of a session found no server.
func (g *Gate) Failed(s *Session, e *mcpbridge.Error, now time.Time) {
	ep := s.Place.Endpoint
	ep.Failed(e, s.DialedAt, s.Probing, now, g.cfg.Random)
	g.healthChanged(ep)
}

// Unknown notes that a probe has failed, and that this says nothing about the server.
func (g *Gate) Unknown(s *Session) {
	ep := s.Place.Endpoint
	ep.Next = ep.ProbedAt.Add(MinProbeInterval)
	g.queue.unblock(ep)
}

// Forget forgets whether the server at a place is up, and abandons the probes. Sessions stay queued.
func (g *Gate) Forget(p *Place) {
	ep := p.Endpoint
	for _, probe := range ep.Probes {
		g.decide(Decision{Do: Abandon, Session: probe})
	}
	ep.Outage, ep.Probes = Outage{}, nil
	g.healthChanged(ep)
}

// Move moves a session that dials to the place with an address. It reports whether the dial may continue: it
// needs a permit there. Otherwise it ends.
func (g *Gate) Move(s *Session, address string, now time.Time) (allowed bool) {
	left := s.Place
	if left.address == address {
		return true
	}
	to := g.endpoints.placeAt(left.server, address)
	ep := to.Endpoint
	allowed = to.dialing < to.server.maxDials && (!ep.Down || ep.AllowsProbe(now))
	if s.Probing { // the probe says nothing about the server of that place
		left.Endpoint.Next = now
	}
	left.Endpoint.endProbe(s)
	if allowed {
		to.dialing++
		g.returnPermit(left)
	} else {
		g.returnPermits(s)
	}
	s.Place = to
	to.users++
	g.endpoints.leave(left)
	if s.Probing = allowed && ep.Down; s.Probing {
		g.beginProbe(s, now)
	}
	return allowed
}
