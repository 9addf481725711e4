package registry

import (
	"maps"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// evict drains a session to free its slot, or because it is idle.
func (r *registry) evict(reg *registration, reason messages.EvictReason) {
	if reg.wasOpen {
		r.counters.Evicted++
		r.publish(&messages.SessionEvicted{Stamp: r.stamp(reg), Reason: reason})
	}
	r.drain(reg, contract.Drain{Evict: true})
}

// onIdleDue evicts the sessions that have not been used for the idle timeout of their
// server.
func (r *registry) onIdleDue() {
	r.stopIdleTimer()
	now := time.Now()
	next := time.Duration(-1)
	for _, name := range slices.Sorted(maps.Keys(r.servers)) {
		srv := r.servers[name]
		timeout := srv.limits.IdleTimeout
		if timeout == 0 {
			continue
		}
		for _, of := range []admission.Rank{admission.UnusedSlot, admission.NoSlot} {
			for s := range srv.turns.Quota.LRU.Oldest(of) {
				reg := registrationOf(s.Of)
				if left := reg.usedAt.Add(timeout).Sub(now); left > 0 {
					if next < 0 || left < next {
						next = left
					}
					break
				}
				r.evict(reg, messages.EvictIdle)
			}
		}
	}
	if next > 0 {
		r.startIdleTimer(now.Add(next))
	}
}

// startIdleTimer starts the timer for the next idle timeout.
func (r *registry) startIdleTimer(at time.Time) {
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

// minKeysWithoutSlot is how many sessions without a slot are kept in any case.
const minKeysWithoutSlot = 1024
