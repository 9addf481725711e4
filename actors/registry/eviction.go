package registry

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// updateRank moves a session to its place in the LRU order, as the most recently used one
// of its rank.
func (r *registry) updateRank(reg *registration) {
	reg.slots.Use(reg, reg.rank())
	if t := reg.tenant; t != nil && t.starved {
		if _, found := t.sessions.Oldest(); found {
			r.unstick(t)
		}
	}
}

// freeSlot takes back the slot of a session, and grants it to others.
func (r *registry) freeSlot(c actor.Context, reg *registration) {
	if !reg.slots.Held {
		return
	}
	reg.slots.GiveBack()
	r.unstick(reg.tenant)
	r.updateRank(reg)
	r.grantDials(c)
}

// makeRoom evicts one session for each session that lacks only a slot under the cap of all
// sessions to dial. The time it takes grows with the servers and the sessions that may dial.
func (r *registry) makeRoom(c actor.Context) {
	now := time.Now()
	wanted := 0
	for e := r.waitingServers.Front(); e != nil; e = e.Next() {
		srv := e.Value.(*server)
		wanted += r.wanted(srv, srv.sessions.Room(), now)
	}
	r.makeRoomIn(c, &r.sessions, wanted, messages.EvictCap)
}

// makeRoomIn evicts sessions of a quota until there is room for wanted more: idle sessions
// first, then busy ones, and among these the least recently used first. It reports whether
// there were enough.
func (r *registry) makeRoomIn(c actor.Context, q *admission.Quota[*registration], wanted int, reason messages.EvictReason) bool {
	for n := q.Missing(wanted); n > 0; n-- {
		reg, found := q.Oldest()
		if !found {
			return false
		}
		r.evict(c, reg, reason)
	}
	return true
}

// evict drains a session to free its slot, or because it is idle.
func (r *registry) evict(c actor.Context, reg *registration, reason messages.EvictReason) {
	if reg.wasOpen {
		r.counters.Evicted++
		r.publish(&messages.SessionEvicted{Stamp: r.stamp(reg), Reason: reason})
	}
	r.drain(c, reg, contract.Drain{Evict: true})
}

// onIdleDue evicts the sessions that have not been used for the idle timeout of their
// server.
func (r *registry) onIdleDue(c actor.Context) {
	r.stopIdleTimer()
	now := time.Now()
	next := time.Duration(-1)
	for _, srv := range r.servers {
		timeout := srv.limits.IdleTimeout
		if timeout == 0 {
			continue
		}
		for _, of := range []admission.Rank{admission.UnusedSlot, admission.NoSlot} {
			for reg := range srv.sessions.LRU.Oldest(of) {
				if left := reg.usedAt.Add(timeout).Sub(now); left > 0 {
					if next < 0 || left < next {
						next = left
					}
					break
				}
				r.evict(c, reg, messages.EvictIdle)
			}
		}
	}
	if next > 0 {
		r.startIdleTimer(c, now.Add(next))
	}
}

// startIdleTimer starts the timer for the next idle timeout, unless it fires before that.
func (r *registry) startIdleTimer(c actor.Context, at time.Time) {
	if r.idleTimer != nil && !at.Before(r.idleAt) {
		return
	}
	r.stopIdleTimer()
	r.idleAt = at
	r.idleTimer = contract.After(r.mailbox, time.Until(at), &idleDue{})
}

// stopIdleTimer stops the timer for the next idle timeout, if it runs.
func (r *registry) stopIdleTimer() {
	if r.idleTimer != nil {
		r.idleTimer.Stop()
	}
	r.idleTimer = nil
}

// onBecameIdle takes back the slot of a session that has no connection and wants none.
func (r *registry) onBecameIdle(c actor.Context, reg *registration) {
	if reg.dialing || reg.slots.Draining {
		return
	}
	reg.wantsDial, reg.probing = false, false
	r.dequeue(reg)
	reg.stopBackoffTimer()
	r.returnSlotOf(c, reg)
	r.updateRank(reg)
	// A session without a slot is kept for its backoff. Their number is bounded.
	for r.sessions.LRU.Len(admission.NoSlot) > max(r.cfg.MaxSessions, minKeysWithoutSlot) {
		r.evict(c, r.oldestWithoutSlot(reg), messages.EvictCap)
	}
}

// oldestWithoutSlot returns the least recently used session without a slot: of the tenant of
// the latest one if it has another one, and else of all.
func (r *registry) oldestWithoutSlot(latest *registration) *registration {
	if latest.tenant != nil {
		for reg := range latest.tenant.sessions.LRU.Oldest(admission.NoSlot) {
			if reg != latest {
				return reg
			}
		}
	}
	for reg := range r.sessions.LRU.Oldest(admission.NoSlot) {
		return reg
	}
	return nil
}

// minKeysWithoutSlot is how many sessions without a slot are kept in any case.
const minKeysWithoutSlot = 1024

// touch makes a session the most recently used one of its rank.
func (r *registry) touch(c actor.Context, reg *registration) {
	reg.usedAt = time.Now()
	r.updateRank(reg)
	if timeout := reg.server.limits.IdleTimeout; timeout > 0 {
		r.startIdleTimer(c, reg.usedAt.Add(timeout))
	}
	if q := reg.server.sessions; reg.outstanding == 0 && q.Excess() > 0 { // after a reload
		r.onCapDue(c, reg.server)
	}
}
