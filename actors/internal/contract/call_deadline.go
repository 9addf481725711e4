package contract

import (
	"time"
)

// Hear notes that something was heard of the call while it runs, or that it begins to run. The pause before a task is
// asked for does not count as quiet: nothing can be heard then.
func (k *Call) Hear(now time.Time) {
	quiet := k.Op.Head().Quiet
	if quiet <= 0 {
		return
	}
	if k.Run.quietAt = now.Add(quiet); k.Run.Task != nil {
		k.Run.quietAt = k.Run.quietAt.Add(k.Run.Task.Pause(0))
	}
}

// EndsAt returns when the call is cut off while it runs. quiet is true if it will have been quiet for too long then.
func (k *Call) EndsAt() (at time.Time, quiet bool) {
	if !k.Run.Replied && !k.Run.quietAt.IsZero() && k.Run.quietAt.Before(k.Deadline) {
		return k.Run.quietAt, true
	}
	return k.LastsUntil(), false
}

// CutOff notes that the call was answered while it runs, and when it has to return.
func (k *Call) CutOff(returnBy time.Time) { k.Run.cut = returnBy.Sub(k.Deadline) }

// LastsUntil returns when the call has to return: at its deadline, or soon after it was cut off.
func (k *Call) LastsUntil() time.Time {
	return k.Deadline.Add(k.Run.cut)
}

// ParkedUntil returns when the call is answered if it still waits.
func (k *Call) ParkedUntil() time.Time {
	if at := k.Op.Head().WaitUntil; !at.IsZero() && at.Before(k.Deadline) && k.Run.Lost == nil {
		return at
	}
	return k.Deadline
}
