package alarm

import "time"

// Timer wakes an actor at the earliest of the times that it was set to.
type Timer struct {
	Fire func() // sends the message that wakes the actor; set before the timer is used

	timer *time.Timer // nil when no message will come
	at    time.Time   // when timer fires
}

// By makes sure that the message comes at a time or earlier.
func (t *Timer) By(at time.Time) {
	if t.timer != nil && !at.Before(t.at) {
		return
	}
	if t.timer != nil && !t.timer.Stop() {
		return // the message is in the mailbox
	}
	t.at = at
	t.timer = time.AfterFunc(max(0, time.Until(at)), t.Fire)
}

// IsDue reports whether a time has come, and wakes the actor then if it is in the future. The zero time does not come.
func (t *Timer) IsDue(at time.Time) bool {
	if time.Now().Before(at) {
		t.By(at)
		return false
	}
	return !at.IsZero()
}

// Fired says that the message has come.
func (t *Timer) Fired() { t.timer = nil }

// Stop stops the timer, and reports whether no message will come.
func (t *Timer) Stop() bool {
	if t.timer == nil || t.timer.Stop() {
		t.timer = nil
		return true
	}
	return false
}
