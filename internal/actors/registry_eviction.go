package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// updateRank moves a session to its place in the LRU order, as the most recently used one
// of its rank.
func (r *registry) updateRank(reg *registration) { r.lru.put(&reg.lruNode, reg.rank(), reg) }

// freeSlot takes back the slot of a session, and grants it to others.
func (r *registry) freeSlot(c actor.Context, reg *registration) {
	if !reg.slot {
		return
	}
	reg.slot = false
	r.open--
	if reg.draining {
		r.drainingSlots--
	}
	r.updateRank(reg)
	r.grantDials(c)
}

// makeRoom evicts one session for each session that lacks only a slot to dial: idle
// sessions first, then busy ones, and among these the least recently used first. Sessions
// that have calls and are not open yet are not evicted.
func (r *registry) makeRoom(c actor.Context) {
	now := time.Now()
	free := r.cfg.MaxSessions - r.open + r.drainingSlots
	for e := r.waitingServers.Front(); e != nil; e = e.Next() {
		srv := e.Value.(*server)
		for range min(r.freeDialPermits(srv, now), srv.queue.Len()) {
			if free--; free < 0 && !r.evictOldest(c) {
				return
			}
		}
	}
}

// evictOldest evicts the next session for the cap. It reports whether there was one.
func (r *registry) evictOldest(c actor.Context) bool {
	for _, of := range []rank{unusedSlot, usedSlot} {
		for reg := range r.lru.oldest(of) {
			r.evict(c, reg, messages.EvictCap)
			return true
		}
	}
	return false
}

// evict drains a session to free its slot, or because it is idle.
func (r *registry) evict(c actor.Context, reg *registration, reason messages.EvictReason) {
	if reg.wasOpen {
		r.counters.Evicted++
		r.publish(&messages.SessionEvicted{Stamp: reg.stamp(), Reason: reason})
	}
	r.drain(c, reg, drain{evict: true})
}

// onIdleDue evicts the sessions that have not been used for the idle timeout.
func (r *registry) onIdleDue(c actor.Context) {
	r.idleTimer = nil
	now := time.Now()
	next := time.Duration(-1)
	for _, of := range []rank{unusedSlot, noSlot} {
		for reg := range r.lru.oldest(of) {
			if left := reg.usedAt.Add(r.cfg.IdleTimeout).Sub(now); left > 0 {
				if next < 0 || left < next {
					next = left
				}
				break
			}
			r.evict(c, reg, messages.EvictIdle)
		}
	}
	if next > 0 {
		r.idleTimer = after(c, next, &idleDue{})
	}
}

// onBecameIdle takes back the slot of a session that has no connection and wants none.
func (r *registry) onBecameIdle(c actor.Context, reg *registration) {
	if reg.dialing || reg.draining {
		return
	}
	reg.wantsDial, reg.probing = false, false
	r.dequeue(reg)
	reg.stopBackoffTimer()
	r.freeSlot(c, reg)
	r.updateRank(reg)
	// A session without a slot is kept for its backoff. Their number is bounded.
	for old := range r.lru.oldest(noSlot) {
		if r.lru.len(noSlot) <= max(r.cfg.MaxSessions, minKeysWithoutSlot) {
			break
		}
		r.evict(c, old, messages.EvictCap)
	}
}

// minKeysWithoutSlot is how many sessions without a slot are kept in any case.
const minKeysWithoutSlot = 1024

// touch makes a session the most recently used one of its rank.
func (r *registry) touch(c actor.Context, reg *registration) {
	reg.usedAt = time.Now()
	r.updateRank(reg)
	if r.idleTimer == nil && r.cfg.IdleTimeout > 0 {
		r.idleTimer = after(c, r.cfg.IdleTimeout, &idleDue{})
	}
}
