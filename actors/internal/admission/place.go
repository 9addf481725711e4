package admission

import (
	"math"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/ring"
)

// Server is one configured server. Its sessions dial at its base, or at the places that a function of
// the user leads to.
type Server struct {
	Quota *Quota // also of the sessions before and after a reload
	Home  *Place

	gate     *Gate
	command  bool // a dial starts a process
	starts   int  // processes that start
	maxDials int  // at one place
	places   ring.Ring[*Place]
	turn     ring.Node[*Server] // in Gate.waiting, while a place has its turn
	reduced  ring.Node[*Server] // in Gate.reduced
	others   map[string]*Place  // by address
	health   LRU[*Place]        // of others, if it is known
}

// Place is a server at one address. Places at the same address share an [Endpoint].
type Place struct {
	Endpoint *Endpoint

	server   *Server
	address  string // "" is not known before the dial
	users    int    // sessions, and the configuration
	dialing  int    // permits in use
	controls []*Control
	blocked  bool // it has no permit until something changes
	known    map[*Tenant]*line
	lines    ring.Ring[*line]
	turn     ring.Node[*Place] // in Server.places, while it has lines and is not blocked
	health   Node[*Place]
}

// line has the sessions of one tenant that wait at one place.
type line struct {
	place    *Place
	tenant   *Tenant // nil without one
	sessions ring.Ring[*Session]
	turn     ring.Node[*line] // in Place.lines, while it has sessions and is not stuck
	stuck    ring.Node[*line] // in Tenant.stuck, while the tenant is at its quota
}

// Tenant is whose sessions share a quota. The zero value has no limit yet.
type Tenant struct {
	Quota
	stuck   ring.Ring[*line]
	starved bool               // a line is stuck, because no session could be evicted
	freed   ring.Node[*Tenant] // in Gate.freed
}

// Endpoint is what is known of an address. Its fields are read-only for others.
type Endpoint struct {
	Outage
	places []*Place
	queued int                    // sessions
	wake   alarm.Entry[*Endpoint] // for the next probe; not set while nothing waits for it
}

// Ranks of the places of a server by their health.
const (
	downPlace Rank = 1
	upPlace   Rank = 2
)

// noteHealth notes the health of an endpoint at the servers that have led to it.
func (ep *Endpoint) noteHealth() {
	to := Unranked
	switch {
	case ep.Down:
		to = downPlace
	case !ep.SeenAt.IsZero():
		to = upPlace
	}
	for _, p := range ep.places {
		if p != p.server.Home && p.health.Rank != to {
			p.server.health.Put(&p.health, to, p)
		}
	}
}

// Foremost returns the endpoint that shows the health of a server: of the places that were led to, one
// that is down, or else one that is up.
func (srv *Server) Foremost() *Endpoint {
	for _, of := range []Rank{downPlace, upPlace} {
		if p := srv.health.First(of); p != nil {
			return p.Endpoint
		}
	}
	return srv.Home.Endpoint
}

// Waiting returns how many places have a turn.
func (srv *Server) Waiting() int { return srv.places.Count }

// Down returns how many of the places that were led to are known to be down.
func (srv *Server) Down() int { return srv.health.Len(downPlace) }

// StartRoom returns how many more sessions of the server may dial, as far as processes that start bound it.
func (srv *Server) StartRoom() int {
	if !srv.command {
		return math.MaxInt
	}
	return srv.gate.starts.room(srv)
}

// IsHome reports whether the sessions of the server begin at this place.
func (p *Place) IsHome() bool { return p == p.server.Home }

// newPlace returns a place of a server. An address that is not known is shared with nobody.
func (g *Gate) newPlace(srv *Server, address string) *Place {
	ep := g.endpoints[address]
	if ep == nil {
		ep = new(Endpoint)
		ep.wake.What = ep
		if address != "" {
			g.endpoints[address] = ep
		}
	}
	p := &Place{Endpoint: ep, server: srv, address: address, known: map[*Tenant]*line{}}
	ep.places = append(ep.places, p)
	return p
}

// placeAt returns the place of a server with an address.
func (g *Gate) placeAt(srv *Server, address string) *Place {
	if address == srv.Home.address {
		return srv.Home
	}
	p := srv.others[address]
	if p == nil {
		p = g.newPlace(srv, address)
		srv.others[address] = p
		p.Endpoint.noteHealth()
	}
	return p
}

// leave notes that a session has left a place, or that a server is configured no more. A place without
// users is forgotten.
func (g *Gate) leave(p *Place) {
	if p.users--; p.users > 0 {
		return
	}
	delete(p.server.others, p.address)
	p.server.health.Remove(&p.health)
	p.Endpoint.places = slices.DeleteFunc(p.Endpoint.places, func(other *Place) bool { return other == p })
	if len(p.Endpoint.places) == 0 {
		delete(g.endpoints, p.address)
	}
}

// line returns the line of a tenant.
func (p *Place) line(t *Tenant) *line {
	l := p.known[t]
	if l == nil {
		l = &line{place: p, tenant: t}
		p.known[t] = l
	}
	return l
}

// unstick notes that the line is not known to be stuck.
func (l *line) unstick() {
	if l.tenant != nil {
		l.tenant.stuck.Remove(&l.stuck)
	}
}

// permits returns how many sessions may start to dial at a place.
func (p *Place) permits(now time.Time) int {
	n := min(p.server.maxDials-p.dialing, p.server.StartRoom())
	if n > 0 && p.Endpoint.Down {
		if n = 0; p.Endpoint.AllowsProbe(now) {
			n = 1
		}
	}
	return max(0, n)
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
