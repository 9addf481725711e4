package registry

import (
	"container/list"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
)

// lane has the sessions of one server and one tenant that wait for a grant. The lanes of a
// server take turns, so that a tenant that opens many sessions does not delay those of
// others. Without tenants, a server has one lane. In the turn of a lane its places take
// turns, see [registry.place]. A server without PerKey is one place.
//
//	empty ──join──▶ ready ──the tenant is at its quota──▶ stuck
//	                 ▲ ▲│                                   │
//	                 │ │└─no place has a permit──▶ passed over
//	                 │ └──a place may have one─────────┘    │
//	                 └──a slot is free, or may be───────────┘
type lane struct {
	server   *server                 // the base of its places
	tenant   *tenant                 // nil without one
	own      placeQueue              // of the sessions at the base
	keyed    map[*server]*placeQueue // of the sessions at other places; those that are not empty
	order    list.List               // of *placeQueue: those that are not empty, and were not passed over
	passed   int                     // queues that were passed over
	position *list.Element           // in server.ready or server.stuck; nil while order is empty
	stuck    bool                    // in server.stuck
}

// placeQueue has the sessions of a lane at one place.
type placeQueue struct {
	lane     *lane
	at       *server
	sessions list.List     // of *registration
	position *list.Element // in lane.order or endpoint.passed; nil while empty
	passed   bool          // in endpoint.passed
}

// laneOf returns the lane of a session, which is added if there is none.
func laneOf(reg *registration) *lane {
	base := reg.server.base
	if reg.tenant == nil {
		return &base.lane
	}
	l := reg.tenant.lanes[base]
	if l == nil {
		l = &lane{server: base, tenant: reg.tenant}
		reg.tenant.lanes[base] = l
	}
	return l
}

// queueAt returns the queue of a place, which is added if there is none.
func (l *lane) queueAt(place *server) *placeQueue {
	if place == l.server {
		l.own.lane, l.own.at = l, place
		return &l.own
	}
	q := l.keyed[place]
	if q == nil {
		q = &placeQueue{lane: l, at: place}
		if l.keyed == nil {
			l.keyed = map[*server]*placeQueue{}
		}
		l.keyed[place] = q
	}
	return q
}

// full reports whether the tenant of the lane is at its quota.
func (l *lane) full() bool { return l.tenant != nil && l.tenant.sessions.Room() == 0 }

// join puts a session into its lane.
func (r *registry) join(reg *registration, first bool) {
	l, place := laneOf(reg), reg.server
	q := l.queueAt(place)
	if first {
		reg.queuePosition = q.sessions.PushFront(reg)
	} else {
		reg.queuePosition = q.sessions.PushBack(reg)
	}
	if q.position == nil {
		q.position = l.order.PushBack(q)
	}
	if place.queued++; place.queued == 1 {
		place.queuedPosition = place.base.queuedPlaces.PushBack(place)
	}
	if !q.passed {
		r.makeReady(l)
	}
}

// leave removes a session from its lane.
func (r *registry) leave(reg *registration) {
	l, place := laneOf(reg), reg.server
	q := l.queueAt(place)
	q.sessions.Remove(reg.queuePosition)
	reg.queuePosition = nil
	if place.queued--; place.queued == 0 {
		place.base.queuedPlaces.Remove(place.queuedPosition)
		place.endpoint.blocked.Remove(place.queuedPosition)
		place.queuedPosition = nil
	}
	if q.sessions.Len() > 0 {
		return
	}
	r.takeBack(q)
	l.order.Remove(q.position)
	q.position = nil
	delete(l.keyed, place)
	if l.order.Len() > 0 {
		return
	}
	r.takeOut(l)
	if l.tenant != nil && l.passed == 0 {
		delete(l.tenant.lanes, l.server)
	}
}

// nextTurn returns the lane of a server whose turn it is, and its queue whose turn it is: the
// first ones at a place with a free dial permit. It returns nil if no place has one.
func (r *registry) nextTurn(srv *server, now time.Time) (*lane, *placeQueue) {
	if !r.hasFreePlace(srv, now) {
		return nil, nil
	}
	for e := srv.ready.Front(); e != nil; {
		l := e.Value.(*lane)
		e = e.Next()
		for q := range r.freeQueues(l, now) {
			return l, q
		}
	}
	return nil, nil
}

// wanted returns how many sessions of a server could dial if they had slots, and at most as
// many as room and as walkStep: further ones are counted when these dial. Those of tenants at
// their quota do not count.
func (r *registry) wanted(srv *server, room int, now time.Time) int {
	room = min(room, contract.WalkStep)
	left := 0
	for place, free := range r.freePlaces(srv, now) {
		if left += min(free, place.queued); left >= room {
			break
		}
	}
	if srv.Command != "" {
		left = min(left, r.maxProcessStarts-r.processStarts)
	}
	left = min(left, room)
	wanted, taken := 0, map[*server]int{}
	for e := srv.ready.Front(); e != nil && left > 0; {
		l := e.Value.(*lane)
		e = e.Next()
		n := left
		if l.full() {
			left -= r.mayDial(l, 1, map[*server]int{}, now) // bounds how many lanes are looked at
			continue
		}
		if l.tenant != nil {
			n = min(n, l.tenant.sessions.Room())
		}
		n = r.mayDial(l, n, taken, now)
		wanted, left = wanted+n, left-n
	}
	return wanted
}

// mayDial returns how many sessions of a lane could dial if they had slots, and at most as
// many as limit. taken has the permits of each place that lanes before this one use; those of
// this one are added.
func (r *registry) mayDial(l *lane, limit int, taken map[*server]int, now time.Time) int {
	found := 0
	for q, free := range r.freeQueues(l, now) {
		n := min(limit-found, q.sessions.Len(), free-taken[q.at])
		taken[q.at] += n
		if found += n; found >= limit {
			break
		}
	}
	return found
}

// makeReady puts a lane behind the other lanes of its server that are ready.
func (r *registry) makeReady(l *lane) {
	if l.position != nil && !l.stuck {
		return
	}
	r.takeOut(l)
	srv := l.server
	l.position = srv.ready.PushBack(l)
	if srv.waitingPosition == nil {
		srv.waitingPosition = r.waitingServers.PushBack(srv)
	}
}

// makeStuck takes a lane out of turn, until its tenant may have a free slot.
func (r *registry) makeStuck(l *lane) {
	r.takeOut(l)
	l.stuck = true
	l.position = l.server.stuck.PushBack(l)
}

// takeOut takes a lane out of the lists of its server.
func (r *registry) takeOut(l *lane) {
	srv := l.server
	switch {
	case l.position == nil:
		return
	case l.stuck:
		srv.stuck.Remove(l.position)
	default:
		srv.ready.Remove(l.position)
	}
	l.position, l.stuck = nil, false
	if srv.ready.Len() == 0 && srv.waitingPosition != nil {
		r.waitingServers.Remove(srv.waitingPosition)
		srv.waitingPosition = nil
	}
}

// unstick makes the lanes of a tenant ready. It takes time that grows with the servers.
func (r *registry) unstick(t *tenant) {
	if t == nil {
		return
	}
	t.starved = false
	for _, l := range t.lanes {
		if l.stuck {
			r.makeReady(l)
		}
	}
}
