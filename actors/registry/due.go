package registry

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
)

// timerFired says that something of the alarm may be due.
type timerFired struct{}

// onTimerFired does what is due, at most WalkStep of it: alone, each would wait for all messages that came meanwhile. If more is
// due, the timer fires at once.
func (r *registry) onTimerFired() {
	r.timer.Fired()
	now := time.Now()
	for range contract.WalkStep {
		first := r.alarm.Due(now)
		if first == nil {
			return
		}
		first.What()
	}
}

// settle does what follows from a message: it carries out what the owners and the gate decide, and then rests.
func (r *registry) settle() {
	r.followOwners()
	r.keeper.Follow()
	if !r.finished {
		r.dialing.Admit()
	}
	r.rest()
}

// rest stops a registry in which nothing is left, or makes sure that it wakes when something is due.
func (r *registry) rest() {
	r.stopIfEmpty()
	if at := r.alarm.Next(); !r.finished && !at.IsZero() {
		r.timer.By(at)
	}
}
