package messages

// Pin keeps the session of a key open: a pinned session is not evicted for a cap or a quota,
// and is not closed when it is idle. Pinning opens nothing; an [Open] or the first call does.
// A key that has no session may be pinned as well.
//
// The pin lasts until it is released, or until the session of the key is closed: by a close
// command, by a reload that removes or changes the server, or because the supervisor stops.
// It survives restarts of the session. Pinning twice is the same as pinning once.
//
// As many keys may be pinned as sessions may be open under each of the bounds: the caps of
// the supervisor and of the server, and the quota of the tenant. Further ones fail with
// [CodeBusy]. When all slots under a bound are in use by pinned sessions, calls to other keys
// fail with [CodeBusy] at once.
//
// Send to: the supervisor.
// Replies: [Pinned] or [Failure].
type Pin struct {
	ID  string `json:"id,omitempty"`
	Key Key    `json:"key"`
	// Release ends the pin, and counts as a use of the session. It does nothing if the key is
	// not pinned.
	Release bool `json:"release,omitempty"`
}

// RequestID returns the id of the command.
func (m *Pin) RequestID() string { return m.ID }

func (*Pin) command() {}

// Pinned is the reply to [Pin].
type Pinned struct {
	ID string `json:"id,omitempty"`
	// Key is the key of the command, with [DefaultScope] in place of an empty scope.
	Key Key `json:"key"`
	// Pinned is whether the key is pinned now.
	Pinned bool `json:"pinned"`
}

// RequestID returns the id of the command.
func (m *Pinned) RequestID() string { return m.ID }

// IgnoreDeadLetterLogging keeps replies to an actor that has stopped out of
// Proto.Actor's dead letter log.
func (*Pinned) IgnoreDeadLetterLogging() {}

func (*Pinned) reply() {}
