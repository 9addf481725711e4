package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// place puts a child where it belongs in the LRU order, as just used.
func (r *registry) updateRank(reg *registration) { r.lru.put(&reg.lruNode, reg.rank(), reg) }

// freeSlot gives the slot of a child to those who wait for one.
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

// makeRoom evicts as many sessions as there are that could dial but for a slot:
// idle ones first, then busy ones, each the least recently used first. One that is
// not open yet, and has callers, is left alone.
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

// evictOldest evicts the session that goes first. It reports whether there is one.
func (r *registry) evictOldest(c actor.Context) bool {
	for _, of := range []rank{unusedSlot, usedSlot} {
		for reg := range r.lru.oldest(of) {
			r.evict(c, reg, messages.EvictCap)
			return true
		}
	}
	return false
}

// evict drains a session that nobody asked to be closed.
func (r *registry) evict(c actor.Context, reg *registration, reason messages.EvictReason) {
	if reg.wasOpen {
		r.counters.Evicted++
		r.publish(c, &messages.SessionEvicted{Stamp: reg.stamp(), Reason: reason})
	}
	r.drain(c, reg, drain{evict: true})
}

// onIdle evicts whom nobody has used for the idle timeout.
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

// onVacant takes the slot of a child that has no connection and wants none.
func (r *registry) onBecameIdle(c actor.Context, reg *registration) {
	if reg.dialing || reg.draining {
		return
	}
	reg.wantsDial, reg.probing = false, false
	r.dequeue(reg)
	reg.stopBackoffTimer()
	r.freeSlot(c, reg)
	r.updateRank(reg)
	// Keys that cannot be opened are remembered for their backoff, but not
	// without bound.
	for old := range r.lru.oldest(noSlot) {
		if r.lru.len(noSlot) <= max(r.cfg.MaxSessions, minKeysWithoutSlot) {
			break
		}
		r.evict(c, old, messages.EvictCap)
	}
}

// minResting is how many keys without a session are remembered in any case.
const minKeysWithoutSlot = 1024

// touch makes a child the most recently used of its rank.
func (r *registry) touch(c actor.Context, reg *registration) {
	reg.usedAt = time.Now()
	r.updateRank(reg)
	if r.idleTimer == nil && r.cfg.IdleTimeout > 0 {
		r.idleTimer = after(c, r.cfg.IdleTimeout, &idleDue{})
	}
}
