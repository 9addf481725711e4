package messages

import "time"

// Event is something that happened to a session. Events are published on the
// actor system's EventStream, those of one supervisor in the order in which
// they happened. They carry no arguments, no results and no session ids.
type Event interface {
	// GetStamp returns what all events carry.
	GetStamp() Stamp
	event()
}

// Stamp says to which session an event happened, and when.
type Stamp struct {
	Key        Key
	Generation uint64
	Time       time.Time
}

// GetStamp returns the stamp itself.
func (s Stamp) GetStamp() Stamp { return s }

func (Stamp) event() {}

// SessionOpened tells that the first session of a key is ready.
type SessionOpened struct {
	Stamp
	// Elapsed is how long dialing took.
	Elapsed time.Duration
}

// SessionExpired tells that the server no longer knows the session.
type SessionExpired struct {
	Stamp
	Cause string
}

// SessionLost tells that the connection of a session broke.
type SessionLost struct {
	Stamp
	Cause string
}

// SessionRestarting tells that a session is about to be dialed again.
type SessionRestarting struct {
	Stamp
	// Attempt counts the failures that the strategy still remembers.
	Attempt int
	// Delay is how long it backs off first.
	Delay time.Duration
	Cause string
}

// SessionRestarted tells that a session is ready again.
type SessionRestarted struct {
	Stamp
	// Attached is true when the session that the server still knew goes on:
	// its state was kept, and the generation is the same.
	Attached bool
	// Elapsed is the time from the fault until it was ready again.
	Elapsed time.Duration
}

// SessionGaveUp tells that a session will not be dialed again before its
// cool-down is over.
type SessionGaveUp struct {
	Stamp
	Cause string
	// RetryAt is when one trial call may try again.
	RetryAt time.Time
}

// EvictReason says why a session was evicted.
type EvictReason string

// The reasons for an eviction.
const (
	// EvictCap: another key needed the slot.
	EvictCap EvictReason = "cap"
	// EvictIdle: nobody used it for the idle timeout.
	EvictIdle EvictReason = "idle"
)

// SessionEvicted tells that a session was told to drain.
type SessionEvicted struct {
	Stamp
	Reason EvictReason
}

// SessionClosed tells that a session is closed for good.
type SessionClosed struct {
	Stamp
	// Cause is what closing complained of, or empty.
	Cause string
}
