// Package admission decides which sessions may dial, and which are evicted for them. A [Gate] takes facts
// and returns decisions. It sends nothing, starts no timers, and knows neither actors nor keys.
package admission

import (
	"time"
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
// What cannot dial delays no other. If it is the turn of a session, and one of its quotas has no slot, another session is
// evicted: one of the same tenant or server if the quota is theirs.
//
// The caller reports facts, then takes decisions by Next until there is none. It calls Due at the time that
// Wake returns.
type Gate struct {
	Sessions Quota // of all servers together

	cfg       Config
	endpoints endpoints
	queue     queue
	slots     slots
	starts    starts
	decided   []Decision // to be taken before others
}

// Config bounds what a gate allows.
type Config struct {
	MaxSessions    int  // open sessions
	MaxStarts      int  // processes that start at once, until they answer
	MaxWithoutSlot int  // sessions without calls and without a slot, which are kept for their backoff
	FailFast       bool // a session that waits does not bring forward the probe of a server that is down

	Random func() float64 // in [0, 1), for the spread of the probes
}

// New returns a gate without servers.
func New(cfg Config) *Gate {
	g := &Gate{cfg: cfg, endpoints: endpoints{}, starts: starts{limit: cfg.MaxStarts}}
	g.slots = slots{all: &g.Sessions, servers: map[string]*Quota{}, queue: &g.queue}
	g.Sessions.SetLimit(cfg.MaxSessions)
	return g
}

// decide adds a decision.
func (g *Gate) decide(d Decision) { g.decided = append(g.decided, d) }

// grant gives a session a slot and its permits.
func (g *Gate) grant(s *Session, now time.Time) Decision {
	p := s.Place
	g.queue.remove(s)
	s.hold(true)
	p.dialing++
	s.Dialing, s.DialedAt, s.onlyControls = true, now, false
	s.Probing = p.Endpoint.Down && !s.Cleanup
	switch {
	case s.Probing:
		g.beginProbe(s, now)
	case s.Cleanup: // it is not a probe, and may take long: the next probe does not wait for it
		if next := now.Add(MinProbeInterval); next.After(p.Endpoint.Next) {
			p.Endpoint.Next = next
			g.queue.unblock(p.Endpoint)
		}
	}
	if p.server.starts != nil {
		s.start = p.server.starts.begin(now)
	}
	g.slots.use(s)
	return Decision{Do: Dial, Session: s}
}

// beginProbe notes that a session probes. Those that wait are looked at again: they wait for the next probe.
func (g *Gate) beginProbe(s *Session, now time.Time) {
	ep := s.Place.Endpoint
	ep.Probes = append(ep.Probes, s)
	ep.ProbedAt, ep.Next = now, now.Add(SlowProbeInterval)
	g.queue.unblock(ep)
}

// healthChanged notes that an endpoint has gone up or down, or that its next probe may be due earlier: what waits there is
// looked at again.
func (g *Gate) healthChanged(ep *Endpoint) {
	ep.noteHealth()
	g.queue.probes.Remove(&ep.wake) // block sets it again
	g.queue.unblock(ep)
}

// returnPermits takes back the permits of a dial.
func (g *Gate) returnPermits(s *Session) {
	if !s.Dialing {
		return
	}
	s.Dialing = false
	s.Place.Endpoint.endProbe(s)
	g.Started(s)
	g.returnPermit(s.Place)
}

// Started notes that a process has answered: it returns the permit to start it.
func (g *Gate) Started(s *Session) {
	if s.start != nil {
		s.start.end()
		s.start = nil
		g.queue.changed = true
	}
}

// returnPermit takes back a permit of a place.
func (g *Gate) returnPermit(p *Place) {
	p.dialing--
	g.giveOut(p)
}

// giveOut gives the free permits of a place to controls first.
func (g *Gate) giveOut(p *Place) {
	for len(p.controls) > 0 && p.dialing < p.server.maxDials {
		k := p.controls[0]
		p.controls = p.controls[1:]
		if k.ended {
			continue
		}
		k.allowed, k.dialing = true, true
		k.Of.controls++
		p.dialing++
		g.decide(Decision{Do: AllowControl, Control: k})
	}
	g.queue.unblock(p.Endpoint)
}
