package registry

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
)

// due is the alarm of the registry, and the timer that wakes the registry for its first entry.
type due struct {
	alarm.Alarm[func()]
	timer *time.Timer
	at    time.Time // when the timer fires, or zero
}

// alarmDue says that something is due.
type alarmDue struct{}

// wake starts the timer anew if something is due earlier or later than it fires.
func (d *due) wake(mailbox *mailbox.Mailbox) {
	if at := d.Next(); !at.Equal(d.at) {
		d.stop()
		if d.at = at; !at.IsZero() {
			d.timer = contract.After(mailbox, time.Until(at), &alarmDue{})
		}
	}
}

// stop stops the timer, if it runs.
func (d *due) stop() {
	if d.timer != nil {
		d.timer.Stop()
	}
	d.timer, d.at = nil, time.Time{}
}

// onAlarmDue does what is due, at most WalkStep of it: alone, each would wait for all messages that came meanwhile. If more is
// due, the timer fires at once.
func (r *registry) onAlarmDue() {
	r.due.stop()
	now := time.Now()
	for range contract.WalkStep {
		first := r.due.Due(now)
		if first == nil {
			return
		}
		first.What()
	}
}

// settle does what follows from a message: it stops if nothing is left, carries out what the gate decides, and sets the timer.
func (r *registry) settle() {
	if r.stopIfEmpty(); !r.finished {
		r.dialing.Admit()
		r.due.wake(r.mailbox)
	}
}
