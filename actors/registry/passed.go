package registry

import (
	"iter"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
)

// Places without a free permit are passed over: they, and their queues in the lanes, are kept at
// their endpoint until something changes there, see [registry.recall]. So a step looks at each of them
// once for each change of its own endpoint, and not for each change of any. If it would pass over more
// than walkStep, the next step of grantDials continues.

// grantsDue says that the next step of grantDials is due.
type grantsDue struct{}

// passOver counts a place or a queue that is passed over. It reports false if there were enough in this
// step.
func (r *registry) passOver() bool {
	if r.passing == contract.WalkStep {
		r.mailbox.PostUserMessage(&grantsDue{})
	}
	r.passing++
	return r.passing <= contract.WalkStep
}

// freePlaces yields the places of a server where sessions are queued, and how many dial permits they
// have free. It passes over those that have none, and schedules their probes.
func (r *registry) freePlaces(srv *server, now time.Time) iter.Seq2[*server, int] {
	return func(yield func(*server, int) bool) {
		if srv.Command != "" && r.processStarts >= r.maxProcessStarts {
			return
		}
		for e := srv.queuedPlaces.Front(); e != nil; {
			place := e.Value.(*server)
			e = e.Next()
			if free := r.freeDialPermits(place, now); free > 0 {
				if !yield(place, free) {
					return
				}
				continue
			}
			if !r.passOver() {
				return
			}
			r.scheduleProbe(place.endpoint)
			srv.queuedPlaces.Remove(place.queuedPosition)
			place.queuedPosition = place.endpoint.blocked.PushBack(place)
		}
	}
}

// hasFreePlace reports whether there is a place with a free dial permit where sessions are queued.
func (r *registry) hasFreePlace(srv *server, now time.Time) bool {
	for range r.freePlaces(srv, now) {
		return true
	}
	return false
}

// freeQueues yields the queues of a lane at places with free dial permits, and how many there are.
// It passes over the other queues.
func (r *registry) freeQueues(l *lane, now time.Time) iter.Seq2[*placeQueue, int] {
	return func(yield func(*placeQueue, int) bool) {
		for e := l.order.Front(); e != nil; {
			q := e.Value.(*placeQueue)
			e = e.Next()
			if free := r.freeDialPermits(q.at, now); free > 0 {
				if !yield(q, free) {
					return
				}
				continue
			}
			if !r.passOver() {
				return
			}
			l.order.Remove(q.position)
			q.position, q.passed = q.at.endpoint.passed.PushBack(q), true
			if l.passed++; l.order.Len() == 0 {
				r.takeOut(l)
			}
		}
	}
}

// recall takes back the places of an endpoint that were passed over, because they may have a
// permit. Call grantDials after it. Its cost grows with the servers and the tenants at this endpoint.
func (r *registry) recall(ep *endpoint) {
	for e := ep.blocked.Front(); e != nil; e = ep.blocked.Front() {
		place := ep.blocked.Remove(e).(*server)
		place.queuedPosition = place.base.queuedPlaces.PushBack(place)
	}
	for e := ep.passed.Front(); e != nil; e = ep.passed.Front() {
		q := e.Value.(*placeQueue)
		r.takeBack(q)
		if q.lane.position == nil {
			r.makeReady(q.lane)
		}
	}
}

// takeBack puts a queue back into its lane, if it was passed over.
func (r *registry) takeBack(q *placeQueue) {
	if q.passed {
		q.at.endpoint.passed.Remove(q.position)
		q.position, q.passed = q.lane.order.PushBack(q), false
		q.lane.passed--
	}
}
