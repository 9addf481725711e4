// Package faults keeps the faults of a session, and what follows from them: when it dials again, which calls fail, and whether its
// actor is restarted.
package faults

import (
	"time"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// maxBugs is how many panics a session may have between two connections. The panic may be
// in the restart itself, and would then recur without end.
const maxBugs = 5

// Faults are the faults of a session. The zero value has none. Its fields are read-only for others.
type Faults struct {
	Cause        *actors.Fault // the last one; nil while there is a connection
	NotBefore    time.Time     // the earliest time of the next dial
	BreakerUntil time.Time     // calls are rejected until then
	Restarts     int32         // of the actor

	decider     actors.Decider // nil before the first fault
	failedDials int32          // dials that failed while those of other keys succeeded
	bugs        int16          // panics since the last connection was opened
}

// Opened notes that the session has a connection.
func (f *Faults) Opened() {
	f.Cause, f.BreakerUntil, f.failedDials, f.bugs = nil, time.Time{}, 0, 0
}

// Forget forgets what keeps the session from dialing.
func (f *Faults) Forget() {
	*f = Faults{Restarts: f.Restarts, bugs: f.bugs}
}

// Ask asks the strategy about a fault.
func (f *Faults) Ask(strategy actors.Strategy, key messages.Key, fault *actors.Fault, now time.Time) actors.Directive {
	if f.decider == nil {
		f.decider = strategy.Decider(key)
	}
	return f.decider.Decide(fault, now)
}

// Decided notes what the strategy has decided about a fault. It returns the fault as callers see it.
func (f *Faults) Decided(fault *actors.Fault, d actors.Directive, now time.Time) *actors.Fault {
	f.Cause, f.NotBefore = fault, now.Add(d.Delay)
	if d.GiveUp {
		f.BreakerUntil = f.NotBefore
		if fault.Class == mcpbridge.Expired {
			f.Cause = changed(fault, func(e *mcpbridge.Error) {
				e.Detail = "sessions of this server expire at once: is it balanced without affinity? The last one: " + e.Detail
			})
		}
	}
	return f.Cause
}

// Unreachable notes that a dial has failed because the server is down. alone is true if dials of other keys have succeeded
// meanwhile: then the session dials less and less often.
func (f *Faults) Unreachable(fault *actors.Fault, alone bool, now time.Time) {
	f.Cause, f.NotBefore = fault, now
	if alone {
		f.failedDials++
		f.NotBefore = now.Add(min(admission.MinProbeInterval<<min(f.failedDials, 10), admission.MaxProbeInterval))
	}
}

// Restart notes that the actor of the session has failed, and reports whether it is restarted.
func (f *Faults) Restart(bug bool) bool {
	if bug {
		f.bugs++
	}
	if f.bugs > maxBugs {
		return false
	}
	f.Restarts++
	return true
}

// BreakerOpen reports whether the strategy has given up the session.
func (f *Faults) BreakerOpen(now time.Time) bool { return f.Cause != nil && now.Before(f.BreakerUntil) }

// WithoutRemedy returns the fault of a server that has answered before: it may come back by itself.
func WithoutRemedy(fault *actors.Fault) *actors.Fault {
	return changed(fault, func(e *mcpbridge.Error) { e.Remedy = "" })
}

// changed returns a fault with a cause that is changed.
func changed(fault *actors.Fault, change func(*mcpbridge.Error)) *actors.Fault {
	copied, cause := *fault, *fault.Cause
	change(&cause)
	copied.Cause = &cause
	return &copied
}
