package messages

import "time"

// Check asks whether the session of a key is ready. It opens nothing, and is no use of the session: an idle one stays
// idle. It takes as long with one session as with thousands, unlike [Inspect].
//
// Send to: the supervisor.
// Replies: [Status] or [Failure].
type Check struct {
	ID  string `json:"id,omitempty"`
	Key Key    `json:"key"`
}

// RequestID returns the id of the command.
func (m *Check) RequestID() string { return m.ID }

func (*Check) command() {}

// Status is the reply to [Check].
type Status struct {
	ID string `json:"id,omitempty"`
	// Key is the key of the command, with [DefaultScope] in place of an empty scope.
	Key Key `json:"key"`
	// State is the state of the session, or empty if the key has none.
	State State `json:"state,omitempty"`
	// Generation is that of the last MCP session of the key, which may have ended. It is 0 if none
	// is known.
	Generation uint64 `json:"generation"`
	// Declared identifies what an open session was told of its client: capabilities and [Introduction], see [Bind]. Sessions that were
	// told the same have the same, also in other processes. It is empty if the session was told nothing, or is not open.
	Declared string `json:"declared,omitempty"`
	// Health says whether the server of the key can be reached, as far as is known without asking
	// it. It is unknown for a key without a session whose server has a PerKey.
	Health Health `json:"health"`
	// Cause is why a call would wait or fail now, or empty: the last fault of the session, what a
	// front has answered, or why the server is down.
	Cause string `json:"cause,omitempty"`
	// RetryAt is when the next dial is due, if calls wait for it, or zero.
	RetryAt time.Time `json:"retryAt,omitzero"`
}

// RequestID returns the id of the command.
func (m *Status) RequestID() string { return m.ID }

// IgnoreDeadLetterLogging keeps replies to an actor that has stopped out of
// Proto.Actor's dead letter log.
func (*Status) IgnoreDeadLetterLogging() {}

func (*Status) reply() {}
