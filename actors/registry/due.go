package registry

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
)

// due is what the registry does at certain times. One timer wakes it for the first of them.
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

// onAlarmDue does what is due first. If more is due, the timer fires at once.
func (r *registry) onAlarmDue() {
	r.due.stop()
	if first := r.due.Due(time.Now()); first != nil {
		first.Of()
	}
}

// settle does what follows from a message: it carries out what the gate decides, and sets the timer.
func (r *registry) settle() {
	if !r.finished {
		r.dialing.Admit()
		r.due.wake(r.mailbox)
	}
}
