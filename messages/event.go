package messages

import (
	"log/slog"
	"time"
)

// Event is something that happened to a session, or that its server said without
// being asked. Events are published on the actor system's EventStream, those of one
// session in the order in which they happened; a [Notification] goes to
// subscribers as well. They carry no arguments, no results and no session ids.
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

// SetStamp replaces the stamp.
func (s *Stamp) SetStamp(stamp Stamp) { *s = stamp }

// IgnoreDeadLetterLogging keeps an event for an actor that has stopped meanwhile out
// of Proto.Actor's dead letter log.
func (Stamp) IgnoreDeadLetterLogging() {}

func (Stamp) event() {}

// SessionOpened tells that the first session of a key is ready.
type SessionOpened struct {
	Stamp
	// Attached is true when the session goes on that our process had before it was
	// restarted.
	Attached bool
	// Protocol is the version of MCP that was agreed on, such as "2025-11-25".
	Protocol string
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
	// Protocol is the version of MCP that was agreed on.
	Protocol string
	// Elapsed is the time from the fault until it was ready again.
	Elapsed time.Duration
}

// SessionGaveUp tells that a session will not be dialed again before its
// cool-down is over, or, where its credentials were refused, it has others.
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

// Notification is an [Event] that a server has sent. All but [Progress] are
// published on the EventStream, and sent to the supervisor's subscriber. Those of
// a session that come faster than handlers of the EventStream take them are dropped
// beyond a bound, and counted in [Counters].
type Notification interface {
	Event
	// SetStamp is for who sends it, before it is sent.
	SetStamp(Stamp)
	notification()
}

// notified marks the notifications.
type notified struct{}

func (notified) notification() {}

// ToolsChanged tells that the server's list of tools has changed.
type ToolsChanged struct {
	Stamp
	notified
}

// PromptsChanged tells that the server's list of prompts has changed.
type PromptsChanged struct {
	Stamp
	notified
}

// ResourcesChanged tells that the server's list of resources, or of their
// templates, has changed.
type ResourcesChanged struct {
	Stamp
	notified
}

// ResourceUpdated tells that a resource has changed. It also goes to the
// subscriber of the [Subscribe] that asked for it.
type ResourceUpdated struct {
	Stamp
	notified
	URI string
}

// ServerLog is a line of the server's log; see [SetLogLevel].
type ServerLog struct {
	Stamp
	notified
	// Level is one of those of [SetLogLevel].
	Level string
	// Logger is the name of what logs, or empty.
	Logger string
	// Data is what the server made of it, as decoded JSON: it may be anything, and
	// is not to be trusted. Read-only.
	Data any
}

// String returns the level, and nothing that could be a secret.
func (e *ServerLog) String() string { return e.Key.String() + " log " + e.Level }

// LogValue returns the key and the level, and nothing that could be a secret.
func (e *ServerLog) LogValue() slog.Value {
	return slog.GroupValue(slog.String("key", e.Key.String()), slog.String("level", e.Level))
}

// Progress tells how far an operation is. It goes only to the subscriber of the
// operation, before its reply.
type Progress struct {
	Stamp
	notified
	// ID is the operation's [Header.ID].
	ID string
	// Progress grows towards Total, which is 0 when it is not known.
	Progress, Total float64
	// Message says what is being done, or is empty.
	Message string
}
