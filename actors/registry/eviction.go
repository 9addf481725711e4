package registry

import (
	"maps"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// evict drains a session to free its slot, or because it is idle.
func (r *registry) evict(reg *table.Registration, reason messages.EvictReason) {
	r.reports.Evicted(reg, reason)
	r.drain(reg, contract.Drain{Evict: true})
}

// onIdleDue evicts sessions that have not been used for the idle timeout of their server. If there are many, others stay due.
func (r *registry) onIdleDue() {
	now := time.Now()
	evicted := 0
	for _, name := range slices.Sorted(maps.Keys(r.table.Servers)) {
		srv := r.table.Servers[name]
		timeout := srv.Resolved.IdleTimeout
		if timeout == 0 {
			continue
		}
		for _, of := range []admission.Rank{admission.UnusedSlot, admission.NoSlot} {
			for s := range srv.Turns.Quota.LRU.Oldest(of) {
				reg := table.Of(s.Of)
				if at := reg.UsedAt.Add(timeout); at.After(now) || evicted == contract.WalkStep {
					r.due.Hasten(&r.idleDue, at)
					break
				}
				evicted++
				r.evict(reg, messages.EvictIdle)
			}
		}
	}
}

// minKeysWithoutSlot is how many sessions without a slot are kept in any case.
const minKeysWithoutSlot = 1024
