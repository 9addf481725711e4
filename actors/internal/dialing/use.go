package dialing

import (
	"maps"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// Touch makes a session the most recently used one of its rank.
func (d *Dialing) Touch(reg *table.Registration) {
	reg.UsedAt = time.Now()
	d.Gate.Use(&reg.Session, reg.Outstanding == 0)
	timeout := reg.Server.Resolved.IdleTimeout
	if timeout > 0 {
		d.Alarm.Hasten(&d.idleDue, reg.UsedAt.Add(timeout))
	}
}

// evict drains a session to free its slot, or because it is idle.
func (d *Dialing) evict(reg *table.Registration, reason messages.EvictReason) {
	d.Reports.Evicted(reg, reason)
	d.Sessions.Drain(reg, contract.Drain{Evict: true})
}

// EvictIdle evicts sessions that have not been used for the idle timeout of their server. If there are many, others stay due.
func (d *Dialing) EvictIdle() {
	now := time.Now()
	evicted := 0
	for _, name := range slices.Sorted(maps.Keys(d.Table.Servers)) {
		srv := d.Table.Servers[name]
		timeout := srv.Resolved.IdleTimeout
		if timeout == 0 {
			continue
		}
		for _, of := range []admission.Rank{admission.UnusedSlot, admission.NoSlot} {
			for s := range srv.Turns.Quota.LRU.Oldest(of) {
				reg := table.Of(s.Of)
				if at := reg.UsedAt.Add(timeout); at.After(now) {
					d.Alarm.Hasten(&d.idleDue, at)
					break
				}
				if evicted == contract.WalkStep {
					d.Alarm.Hasten(&d.idleDue, now.Add(1)) // in another step
					return
				}
				evicted++
				d.evict(reg, messages.EvictIdle)
			}
		}
	}
}
