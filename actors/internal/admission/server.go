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

	starts   *serverStarts      // nil if a dial starts no process
	maxDials int                // at one place
	places   ring.Ring[*Place]  // that have their turn
	turn     ring.Node[*Server] // in queue.servers, while a place has its turn
	reduced  ring.Node[*Server] // in slots.reduced
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

// Control is a second MCP session of a key. It is opened beside the first one, and asked what the first one has
// refused. It needs a permit, and no slot: it uses that of the first one.
type Control struct {
	Of  *Session
	For any // who waits for AllowControl

	place   *Place // where it waits, or has its permit
	allowed bool   // it uses the slot
	dialing bool   // it has a permit
	ended   bool
}

// line has the sessions of one tenant that wait at one place.
type line struct {
	place    *Place
	tenant   *Tenant // nil without one
	sessions ring.Ring[*Session]
	turn     ring.Node[*line] // in Place.lines, while it has sessions and is not stuck
	stuck    ring.Node[*line] // in Tenant.stuck, while the tenant is at its quota
}

// Tenant has sessions that share a quota. The zero value has no limit yet.
type Tenant struct {
	Quota
	stuck   ring.Ring[*line]
	starved bool               // a line is stuck, because no session could be evicted
	retry   ring.Node[*Tenant] // in queue.retries
}

// Endpoint is what is known of an address. Its fields are read-only for others.
type Endpoint struct {
	Outage
	Probes []*Session // that dial while the endpoint is down, the oldest first
	places []*Place
	queued int                    // sessions
	wake   alarm.Entry[*Endpoint] // for the next probe; not set while nothing waits for it
}

// AllowsProbe reports whether another probe may begin.
func (ep *Endpoint) AllowsProbe(now time.Time) bool {
	return len(ep.Probes) < MaxProbes && !now.Before(ep.Next)
}

// endProbe removes a probe.
func (ep *Endpoint) endProbe(probe *Session) {
	ep.Probes = slices.DeleteFunc(ep.Probes, func(p *Session) bool { return p == probe })
}

// Waiting returns how many places have a turn.
func (srv *Server) Waiting() int { return srv.places.Count }

// StartRoom returns how many more sessions of the server may dial, as far as processes that start bound it.
func (srv *Server) StartRoom() int {
	if srv.starts == nil {
		return math.MaxInt
	}
	return srv.starts.room()
}

// IsHome reports whether the sessions of the server begin at this place.
func (p *Place) IsHome() bool { return p == p.server.Home }

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
