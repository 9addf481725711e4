package admission

import (
	"maps"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/ring"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Gate decides which sessions may dial. A session needs a slot of each of its quotas, and a permit of its
// place: MaxDials, the permits to start processes, and the probes of a server that is down bound these.
//
//	          Want            Next: Dial            Opened
//	resting ───────▶ queued ─────────────▶ dialing ─────────▶ open
//	   ▲               ▲                      │                │
//	   │               │                      │ Lost,          │ Lost
//	   │               │ Want                 ▼ Abandoned      ▼
//	   └────Rest───────┴────────────────── without a connection
//
// The queued sessions of one tenant at one place are a line. Servers take turns; so do the places of a server,
// and the lines of a place. What cannot dial delays no other: a place without a permit is blocked, and the line of
// a tenant at its quota is stuck, until that may have changed. If it is the turn of a session, and one of its
// quotas has no slot, another session is evicted: one of the same tenant or server if the quota is theirs.
//
// The caller reports facts, then takes decisions by Next until there is none. It calls Due at the time that
// Wake returns.
type Gate struct {
	Sessions Quota // of all servers together

	cfg       Config
	quotas    map[string]*Quota    // by server; they stay when the server is removed
	endpoints map[string]*Endpoint // by address
	waiting   ring.Ring[*Server]   // with a place that has its turn
	reduced   ring.Ring[*Server]   // whose quota may be exceeded since a reload
	freed     ring.Ring[*Tenant]   // with stuck lines, and maybe a slot for them
	looks     int                  // places and lines that this step has looked at in vain
	starts    starts
	probes    alarm.Alarm[*Endpoint] // when the next one of an endpoint is due
	decided   []Decision             // to be taken before others
	changed   bool                   // there may be a decision
	rested    *Session               // the last session that became idle
}

// Config bounds what a gate allows.
type Config struct {
	MaxSessions    int  // open sessions
	MaxStarts      int  // processes that start at once, until they answer
	MaxWithoutSlot int  // sessions without calls and without a slot, which are kept for their backoff
	FailFast       bool // a session that waits does not bring forward the probe of a server that is down

	Random func() float64 // in [0, 1), for the spread of the probes
}

// Decision is what a gate has decided.
type Decision struct {
	Do      Do
	Session *Session             // nil for AllowControl and Continue
	Reason  messages.EvictReason // of Evict
	Control *Control             // of AllowControl
}

// Do is what is to be done.
type Do string

// The decisions. What follows from Evict is reported with Drain, and before the next decision.
const (
	Dial         Do = "dial"          // the session has a slot and a permit
	Evict        Do = "evict"         // the session is to drain
	Abandon      Do = "abandon"       // the session is to end its dial, and may want another
	AllowControl Do = "allow control" // the control has a permit
	Continue     Do = "continue"      // the next decision is to be taken in another step
)

// New returns a gate without servers.
func New(cfg Config) *Gate {
	g := &Gate{cfg: cfg, quotas: map[string]*Quota{}, endpoints: map[string]*Endpoint{}, starts: starts{limit: cfg.MaxStarts}}
	g.Sessions.SetLimit(cfg.MaxSessions)
	return g
}

// NewServer returns a server. The address is "" if a function of the user returns one for each session. command
// is true if a dial starts a process.
func (g *Gate) NewServer(name, address string, command bool) *Server {
	srv := &Server{Quota: g.quotas[name], gate: g, command: command, others: map[string]*Place{}}
	if srv.Quota == nil {
		srv.Quota = new(Quota)
		g.quotas[name] = srv.Quota
	}
	srv.Home = g.newPlace(srv, address)
	srv.Home.users++
	return srv
}

// SetLimits sets how many sessions of a server may be open, where 0 is no bound, and how many may dial
// at one place.
func (g *Gate) SetLimits(srv *Server, maxSessions, maxDials int) {
	srv.Quota.SetLimit(maxSessions)
	srv.maxDials = maxDials
	g.reduce(srv)
	for _, address := range slices.Sorted(maps.Keys(srv.others)) {
		g.released(srv.others[address])
	}
	g.released(srv.Home)
}

// Remove notes that a server is not configured any more. Its sessions stay.
func (g *Gate) Remove(srv *Server) { g.leave(srv.Home) }

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
	g.dequeue(s)
	g.returnPermits(s)
	g.returnSlot(s)
	g.leave(s.Place)
}

// Pending reports whether there may be a decision, or another time to wake.
func (g *Gate) Pending() bool { return g.changed || len(g.decided) > 0 }

// Use makes a session the most recently used one. idle says that it has no calls.
func (g *Gate) Use(s *Session, idle bool) {
	s.idle = idle
	g.use(s)
}

// use makes a session the most recently used one of its rank.
func (g *Gate) use(s *Session) {
	before, to := s.use()
	if to >= UnusedSlot && before < UnusedSlot { // it may be evicted now
		g.changed = true
		if s.Tenant != nil && s.Tenant.starved {
			g.unstick(s.Tenant)
		}
	}
	if to == UnusedSlot {
		g.reduce(s.Place.server)
	}
}

// Pin keeps a session from being evicted, or ends that.
func (g *Gate) Pin(s *Session, pinned bool) {
	s.pin(pinned)
	g.use(s)
}

// Drain takes a session out of its line and out of the order of eviction. Its slot and its permit stay in
// use until it leaves.
func (g *Gate) Drain(s *Session) {
	g.dequeue(s)
	s.lent = false
	s.drain()
}

// Want queues a session for a dial. If it still has its slot, as after a fault, and there is a permit, it
// dials at once. So does one whose control uses its slot: the dial takes over that connection.
func (g *Gate) Want(s *Session, now time.Time) {
	s.open = false
	if s.Held && (s.controls > 0 || s.Place.permits(now) > 0) {
		g.decided = slices.Insert(g.decided, 0, g.grant(s, now)) // it must not wait until it is outdated
		return
	}
	g.returnSlot(s)
	g.enqueue(s, now)
}

// Rest takes back the slot of a session that has no connection, and may not or will not dial yet. If controls
// use it, it stays until they have ended, and may be evicted.
func (g *Gate) Rest(s *Session) {
	s.open = false
	g.dequeue(s)
	g.returnSlot(s)
}

// Idle does what Rest does, for a session that will dial only for its next call. If there are too many
// without a slot, one is evicted.
func (g *Gate) Idle(s *Session) {
	s.Probing = false
	g.Rest(s)
	g.use(s)
	g.rested, g.changed = s, true
}

// Opened notes that a dial has succeeded.
func (g *Gate) Opened(s *Session) {
	g.returnPermits(s)
	s.Probing, s.open = false, true
	g.use(s)
}

// Lost notes that a session has no connection, because that broke or because the dial has failed. It keeps its
// slot until Want or Rest.
func (g *Gate) Lost(s *Session) {
	s.open = false
	g.dequeue(s)
	g.returnPermits(s)
	g.use(s)
}

// Abandoned notes that a session has ended its dial, as it was told to.
func (g *Gate) Abandoned(s *Session, now time.Time) {
	if s.Probing {
		s.Place.Endpoint.Next = now
	}
	g.returnPermits(s)
}

// Started notes that a process has answered.
func (g *Gate) Started(s *Session) { g.returnStart(s) }

// Up notes that the server of a session has answered. All sessions that wait there may dial. Other probes are
// abandoned and dial again: they may hang at a network address that the server has left.
func (g *Gate) Up(s *Session, now time.Time) {
	ep := s.Place.Endpoint
	down := ep.Down
	probes := ep.Answered(now)
	if !down {
		ep.noteHealth()
		return
	}
	for _, probe := range probes {
		if probe != s {
			g.decide(Decision{Do: Abandon, Session: probe})
		}
	}
	g.review(ep)
}

// Failed notes that the last dial of a session found no server.
func (g *Gate) Failed(s *Session, e *mcpbridge.Error, now time.Time) {
	ep := s.Place.Endpoint
	ep.Failed(e, s.DialedAt, s.Probing, now, g.cfg.Random)
	g.review(ep) // the next probe may be due earlier
}

// Unknown notes that a probe, which has failed, says nothing about the server.
func (g *Gate) Unknown(s *Session) {
	ep := s.Place.Endpoint
	ep.Next = ep.ProbedAt.Add(MinProbeInterval)
	g.recall(ep)
}

// Forget forgets whether the server at a place is up, and abandons the probes. Sessions stay queued.
func (g *Gate) Forget(p *Place) {
	ep := p.Endpoint
	for _, probe := range ep.Probes {
		g.decide(Decision{Do: Abandon, Session: probe})
	}
	ep.Outage = Outage{}
	g.review(ep)
}

// Move moves a session that dials to the place with an address. It reports whether the dial may go on: it
// needs a permit there. Otherwise it ends.
func (g *Gate) Move(s *Session, address string, now time.Time) (allowed bool) {
	left := s.Place
	if left.address == address {
		return true
	}
	to := g.placeAt(left.server, address)
	ep := to.Endpoint
	allowed = to.dialing < to.server.maxDials && (!ep.Down || ep.AllowsProbe(now))
	if s.Probing { // the probe says nothing about the server of that place
		left.Endpoint.Next = now
	}
	left.Endpoint.EndProbe(s)
	if allowed {
		to.dialing++
		g.returnPermit(left)
	} else {
		g.returnPermits(s)
	}
	s.Place = to
	to.users++
	g.leave(left)
	if s.Probing = allowed && ep.Down; s.Probing {
		g.beginProbe(s, now)
	}
	return allowed
}

// beginProbe notes that a session probes. Those that wait are looked at again: they wait for the next probe.
func (g *Gate) beginProbe(s *Session, now time.Time) {
	s.Place.Endpoint.BeginProbe(s, now)
	g.recall(s.Place.Endpoint)
}

// enqueue puts a session into its line. While the server is down, a session that has not probed yet goes
// first, and one that finds nobody waiting may probe soon.
func (g *Gate) enqueue(s *Session, now time.Time) {
	ep := s.Place.Endpoint
	s.line = s.Place.line(s.Tenant)
	if ep.Down && !s.Probing && !s.Cleanup {
		s.line.sessions.PushFront(&s.turn, s)
		if soon := ep.ProbedAt.Add(MinProbeInterval); ep.queued == 0 && soon.Before(ep.Next) && !g.cfg.FailFast {
			ep.Next = soon
		}
	} else {
		s.line.sessions.Push(&s.turn, s)
	}
	ep.queued++
	s.Place.blocked = false // it is looked at again, and so is the line
	s.line.unstick()
	g.arrange(s.line)
}

// dequeue removes a session from its line, if it is queued.
func (g *Gate) dequeue(s *Session) {
	l := s.line
	if l == nil {
		return
	}
	s.line = nil
	l.sessions.Remove(&s.turn)
	if l.sessions.Count == 0 {
		l.unstick()
		delete(l.place.known, l.tenant)
	}
	g.arrange(l)
	ep := l.place.Endpoint
	if ep.queued--; ep.queued == 0 {
		g.probes.Remove(&ep.wake)
	}
}

// arrange gives a line, its place and its server turns, if they have something to take turns with.
func (g *Gate) arrange(l *line) {
	p := l.place
	takesTurns(&p.lines, &l.turn, l, l.sessions.Count > 0 && l.stuck.In == nil)
	g.arrangePlace(p)
}

// arrangePlace does so for a place.
func (g *Gate) arrangePlace(p *Place) {
	takesTurns(&p.server.places, &p.turn, p, p.lines.Count > 0 && !p.blocked)
	takesTurns(&g.waiting, &p.server.turn, p.server, p.server.places.Count > 0)
	g.changed = true
}

// takesTurns puts a member behind the others of a ring, or takes it out.
func takesTurns[T any](r *ring.Ring[T], n *ring.Node[T], member T, takes bool) {
	switch {
	case !takes:
		r.Remove(n)
	case n.In == nil:
		r.Push(n, member)
	}
}

// recall looks at the places of an endpoint again, because they may have a permit.
func (g *Gate) recall(ep *Endpoint) {
	for _, p := range ep.places {
		p.blocked = false
		g.arrangePlace(p)
	}
}

// review does what follows when it has changed whether an endpoint is up.
func (g *Gate) review(ep *Endpoint) {
	ep.noteHealth()
	g.probes.Remove(&ep.wake) // block sets it again
	g.recall(ep)
}

// unstick has the lines of a tenant looked at again, because it may have a slot.
func (g *Gate) unstick(t *Tenant) {
	t.starved = false
	takesTurns(&g.freed, &t.freed, t, t.stuck.Count > 0)
	g.changed = true
}

// reduce looks whether a server has more sessions than its quota allows.
func (g *Gate) reduce(srv *Server) {
	if srv.Quota.excess() > 0 {
		takesTurns(&g.reduced, &srv.reduced, srv, true)
		g.changed = true
	}
}

// returnSlot takes back the slot of a session without a connection, once no control uses it.
func (g *Gate) returnSlot(s *Session) {
	if s.lent = s.Held && s.controls > 0; s.lent {
		g.use(s)
		return
	}
	g.freeSlot(s)
}

// freeSlot takes back the slot of a session.
func (g *Gate) freeSlot(s *Session) {
	if !s.Held {
		return
	}
	s.count(-1)
	if s.Tenant != nil {
		g.unstick(s.Tenant)
	}
	g.use(s)
	g.changed = true
}

// returnPermits takes back the permits of a dial.
func (g *Gate) returnPermits(s *Session) {
	if !s.Dialing {
		return
	}
	s.Dialing = false
	s.Place.Endpoint.EndProbe(s)
	g.returnStart(s)
	g.returnPermit(s.Place)
}

// returnPermit takes back a permit of a place.
func (g *Gate) returnPermit(p *Place) {
	p.dialing--
	g.released(p)
}

// released gives free permits of a place to controls first.
func (g *Gate) released(p *Place) {
	g.allowControls(p)
	g.recall(p.Endpoint)
}

// returnStart takes back the permit to start a process.
func (g *Gate) returnStart(s *Session) {
	if s.start != nil {
		g.starts.end(s.start)
		s.start = nil
		g.changed = true
	}
}

// decide adds a decision.
func (g *Gate) decide(d Decision) { g.decided = append(g.decided, d) }
