package admission

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/ring"
)

// queue has the sessions that wait to dial. The queued sessions of one tenant at one place are a line. Servers take turns; so
// do the places of a server, and the lines of a place. A place without a permit is blocked, and the line of a tenant at its
// quota is stuck: they have no turn until that may have changed.
type queue struct {
	servers ring.Ring[*Server]     // with a place that has its turn
	retries ring.Ring[*Tenant]     // with stuck lines, and maybe a slot for them
	probes  alarm.Alarm[*Endpoint] // when the next probe of an endpoint is due, if a place is blocked until then
	skipped int                    // places and lines for which this step has no decision
	changed bool                   // there may be a decision
}

// maxSkipped is how many places and lines one step skips.
const maxSkipped = 64

// push puts a session into its line, at the front or at the end.
func (q *queue) push(s *Session, front bool) {
	s.line = s.Place.line(s.Tenant)
	if front {
		s.line.sessions.PushFront(&s.turn, s)
	} else {
		s.line.sessions.Push(&s.turn, s)
	}
	s.Place.Endpoint.queued++
	s.Place.blocked = false // it is looked at again, and so is the line
	s.line.unstick()
	q.arrange(s.line)
}

// remove removes a session from its line, if it is queued.
func (q *queue) remove(s *Session) {
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
	q.arrange(l)
	ep := l.place.Endpoint
	if ep.queued--; ep.queued == 0 {
		q.probes.Remove(&ep.wake)
	}
}

// arrange gives a line, its place and its server turns, if they have something to take turns with.
func (q *queue) arrange(l *line) {
	takesTurns(&l.place.lines, &l.turn, l, l.sessions.Count > 0 && l.stuck.In == nil)
	q.arrangePlace(l.place)
}

// arrangePlace gives a place and its server turns, if they have something to take turns with.
func (q *queue) arrangePlace(p *Place) {
	takesTurns(&p.server.places, &p.turn, p, p.lines.Count > 0 && !p.blocked)
	takesTurns(&q.servers, &p.server.turn, p.server, p.server.places.Count > 0)
	q.changed = true
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

// block takes a place without a permit out of turn, until something changes at its endpoint. If that is
// the next probe, it sets the alarm.
func (q *queue) block(p *Place, now time.Time) {
	p.blocked = true
	q.arrangePlace(p)
	if ep := p.Endpoint; ep.Down && ep.Next.After(now) {
		q.probes.Set(&ep.wake, ep.Next)
	}
}

// unblock gives the places of an endpoint turns again, because they may have a permit.
func (q *queue) unblock(ep *Endpoint) {
	for _, p := range ep.places {
		p.blocked = false
		q.arrangePlace(p)
	}
}

// stick takes a line out of turn, until its tenant may have a slot. Until then, the other stuck lines of the tenant are
// not looked at either.
func (q *queue) stick(l *line) {
	q.retries.Remove(&l.tenant.retry)
	l.tenant.stuck.Push(&l.stuck, l)
	q.arrange(l)
}

// unstick lets retry give the stuck lines of a tenant turns again, because it may have a slot.
func (q *queue) unstick(t *Tenant) {
	t.starved = false
	takesTurns(&q.retries, &t.retry, t, t.stuck.Count > 0)
	q.changed = true
}

// retry gives turns to stuck lines whose tenant may have a slot now: to maxSkipped of them in one step. The others have
// theirs in later steps, unless the tenant is at its quota again.
func (q *queue) retry() {
	n := 0
	for t := range q.retries.All() {
		for l := range t.stuck.All() {
			if n++; n > maxSkipped {
				return
			}
			l.unstick()
			q.arrange(l)
		}
		q.retries.Remove(&t.retry)
	}
}

// skip counts a place or a line for which there is no decision. It returns false if those are enough for one step.
func (q *queue) skip() bool {
	q.skipped = (q.skipped + 1) % maxSkipped
	return q.skipped > 0
}

// endTurn puts a line, its place and its server behind the others: the first session of the line is about to be removed.
func (q *queue) endTurn(l *line) {
	q.servers.Remove(&l.place.server.turn)
	l.place.server.places.Remove(&l.place.turn)
	l.place.lines.Remove(&l.turn)
}
