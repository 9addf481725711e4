package messages

import (
	"log/slog"
	"slices"
	"time"
)

// Reply is the one reply to a command: a result or a [Failure].
type Reply interface {
	// RequestID returns the id of the command.
	RequestID() string
	reply()
}

// Result is the reply to an operation that has succeeded.
type Result interface {
	Reply
	// GetReceipt returns the receipt.
	GetReceipt() *Receipt
}

// Receipt is part of every result. A result prints as its receipt, so that its content
// stays out of logs.
type Receipt struct {
	Key Key `json:"key"`
	// ID is the operation's [Header.ID].
	ID string `json:"id"`
	// Target is the name of the tool or prompt of the operation, or the URI of the resource,
	// see [TargetOf].
	Target string `json:"target,omitempty"`
	// Generation counts the MCP sessions of the key, from 1. When it grows, the state that
	// the server kept for the previous MCP session is gone.
	Generation uint64 `json:"generation"`
	// Attempt counts how often the operation was run on a session, from 1. It is more than
	// 1 if the operation was replayed, or if the server had not processed it before. It is
	// 0 if nothing had to be run.
	Attempt int `json:"attempt"`
	// Replayed is true if the operation was sent more than once.
	Replayed bool `json:"replayed"`
	// Supervisor is the id of the PID of the supervisor.
	Supervisor string `json:"supervisor"`
	// Odd names the parts of the result that are not what MCP allows, and what became of each: it was left out, or is shown as
	// text. The names are the server's, and must not be trusted. Read-only.
	Odd []string `json:"odd,omitempty"`
	// Incomplete says why a list lacks what is on further pages of the server, or is empty.
	Incomplete string `json:"incomplete,omitempty"`
	AsSent
}

// Remarks returns what to tell of a result whose parts are odd, or that is incomplete: a sentence each, which may quote
// names of the server.
func (r *Receipt) Remarks() []string {
	remarks := slices.Clone(r.Odd)
	if r.Incomplete != "" {
		remarks = append(remarks, "the list is incomplete: "+r.Incomplete)
	}
	return remarks
}

// GetReceipt returns the receipt itself.
func (r *Receipt) GetReceipt() *Receipt { return r }

// RequestID returns the id of the operation.
func (r *Receipt) RequestID() string { return r.ID }

// String returns the key and the id, and nothing of the result.
func (r *Receipt) String() string { return r.Key.String() + "#" + r.ID }

// LogValue returns the key and the id, and nothing of the result.
func (r *Receipt) LogValue() slog.Value {
	return slog.GroupValue(slog.String("key", r.Key.String()), slog.String("id", r.ID))
}

// IgnoreDeadLetterLogging keeps replies to an actor that has stopped out of
// Proto.Actor's dead letter log.
func (r *Receipt) IgnoreDeadLetterLogging() {}

func (*Receipt) reply() {}

// Closed is the reply to [CloseSession], [CloseScope], [CloseServer], [CloseMatching] and
// [CloseAll].
type Closed struct {
	ID string `json:"id,omitempty"`
	// Sessions is how many sessions were closed.
	Sessions int `json:"sessions"`
	// Left are the keys that could not be closed, and the handles that could not be released, with the reason. Another close command
	// tries again to close; handles are tried again when their server opens a session.
	Left []Left `json:"left,omitempty"`
	// Unanswered are the names of the members of a cluster that have not answered in time, so
	// that their sessions may be open. Only a cluster sets it.
	Unanswered []string `json:"unanswered,omitempty"`
}

// Left is a key whose MCP session could not be closed, or a handle of it that could not be released.
type Left struct {
	Key Key `json:"key"`
	// Handle is the tool that has minted the handle, or empty if it is the session that is left.
	Handle string `json:"handle,omitempty"`
	Reason string `json:"reason"`
}

// RequestID returns the id of the command.
func (m *Closed) RequestID() string { return m.ID }

// IgnoreDeadLetterLogging keeps replies to an actor that has stopped out of
// Proto.Actor's dead letter log.
func (*Closed) IgnoreDeadLetterLogging() {}

func (*Closed) reply() {}

// State is the state of a session.
type State string

// The states of a session.
const (
	// StateWaiting: the session has no connection. It waits for a call, a backoff, its
	// server, a slot under the cap, or its turn to dial.
	StateWaiting State = "waiting"
	// StateConnecting: the session dials.
	StateConnecting State = "connecting"
	// StateReady: the session has a connection.
	StateReady State = "ready"
	// StateDraining: the session finishes its calls, and closes.
	StateDraining State = "draining"
	// StateBroken: the session has no connection, the strategy has given it up, and no call
	// has tried to open it again since.
	StateBroken State = "broken"
)

// Snapshot is the reply to [Inspect]. It is immutable.
type Snapshot struct {
	ID   string    `json:"-"`
	Time time.Time `json:"time"`
	// Servers are the configured servers, sorted by name, also those without sessions.
	// [Inspect.Server] selects one of them.
	Servers []ServerSnapshot `json:"servers"`
	// Sessions are the selected sessions, sorted by key, at most [Inspect.Limit] of them.
	Sessions []SessionSnapshot `json:"sessions"`
	// Total is the number of selected sessions.
	Total int `json:"total"`
	// States is the number of selected sessions by state.
	States   map[State]int `json:"states"`
	Counters Counters      `json:"counters"`
	// Waiting is the number of calls that wait, over all sessions: for a connection, for
	// a server behind a front, for other calls of their session, or in interceptors.
	Waiting int `json:"waiting"`
	// Open is the number of slots in use, by sessions that are open, dial or drain. It never
	// exceeds Cap.
	Open int `json:"open"`
	Cap  int `json:"cap"`
	// Stopping is true if the supervisor is stopping: it takes no more operations.
	Stopping bool `json:"stopping,omitempty"`
	// Members are the members of the cluster, sorted by name. Only a cluster sets it. A supervisor of a cluster names only
	// its own member.
	Members []MemberSnapshot `json:"members,omitempty"`
}

// MemberSnapshot is one member of a cluster in a [Snapshot].
type MemberSnapshot struct {
	// Name is the name of the member, which is also that of its supervisor.
	Name string `json:"name"`
	// Address is the host and the port at which the other members reach it.
	Address string `json:"address"`
	// ID identifies the member since it has last joined.
	ID string `json:"id"`
	// Self is true for the member that has made the snapshot.
	Self bool `json:"self,omitempty"`
	// Answered is true if the snapshot contains the sessions and the counters of the member. It
	// is false if the member has not answered in time.
	Answered bool `json:"answered"`
	// Leaving is true if the member hands its sessions over to the others, and stops.
	Leaving bool `json:"leaving,omitempty"`
	// Fenced says why the member starts no calls, and is empty if it does. While the member is fenced, its calls wait, and
	// fail with [CodeUnavailable] if that lasts until their deadline. Commands for all members fail at once, but for [Inspect].
	//
	// Fenced, Refused, View, Lease and Hop are reported by the member itself, and are zero if it did not answer.
	Fenced string `json:"fenced,omitempty"`
	// Refused is the number of commands of its callers that the member has failed itself, such as because it was fenced, and
	// that certainly did not run. Cancelled ones do not count. They are not in Counters.
	Refused uint64 `json:"refused,omitempty"`
	// View is the number of the last view of the cluster that the member has. It is 0 while the member is not in the view.
	View uint64 `json:"view,omitempty"`
	// Lease is the time for which the member may act without an answer of the witness. While the member is well, it is
	// more than half of the lease of the configuration.
	Lease time.Duration `json:"-"`
	// Hop is the time that the last heartbeat to another member and back has taken, to the slowest of them.
	Hop time.Duration `json:"-"`
	// Sessions is the number of its sessions in all states that were selected.
	Sessions int `json:"sessions"`
	// Open is the number of its slots in use, and Cap that of all its slots.
	Open int `json:"open"`
	Cap  int `json:"cap"`
}

// Health says whether a server can be reached.
type Health string

// The values of a Health.
const (
	// HealthUnknown: the server was not dialed since the start, since its configuration has
	// changed or since a [Forget], or its answers were none that tell.
	HealthUnknown Health = "unknown"
	// HealthUp: the server has answered, and no dial has failed to reach it since.
	HealthUp Health = "up"
	// HealthDown: the last dial did not reach the server.
	HealthDown Health = "down"
)

// ServerSnapshot is one configured server of a [Snapshot]. Servers with the same URL or
// command share their health.
type ServerSnapshot struct {
	Name   string `json:"name"`
	Health Health `json:"health"`
	// Since is when the server came up or went down, or zero if that is not known.
	Since time.Time `json:"since,omitzero"`
	// Cause is why the server is down, or empty. It does not quote the server, whose words
	// may be about the key that it has refused.
	Cause string `json:"cause,omitempty"`
	// RetryAt is when a server that is down is probed next, if calls wait for it, or zero.
	RetryAt time.Time `json:"retryAt,omitzero"`
	// Sessions is the number of its sessions in all states.
	Sessions int `json:"sessions"`
	// States is the number of its sessions by state, or nil if there are none.
	States map[State]int `json:"states,omitempty"`
	// Lists are what the catalogue knows of its lists, by method, such as "tools/list".
	Lists map[string]ListsSnapshot `json:"lists,omitempty"`
	// Handles are the kinds of handles that are declared, in that order.
	Handles []HandleSnapshot `json:"handles,omitempty"`
	// Load is about its operations.
	Load Load `json:"load"`
}

// Load says what the operations of a server do, and did since the start of the supervisor.
// With interceptors, the operations are those that the interceptors have passed on.
type Load struct {
	// InFlight is the number of operations that sessions run.
	InFlight int `json:"inFlight"`
	// Waiting is the number of operations that wait: for a connection, for the server behind a
	// front, or for other calls of their session.
	Waiting int `json:"waiting"`
	// Succeeded is how many operations had a result.
	Succeeded uint64 `json:"succeeded"`
	// Failed is how many operations had a [Failure], by its code, or nil if there was none.
	Failed map[Code]uint64 `json:"failed,omitempty"`
	// Bounded is how many of these failures were calls beyond the Bounds or the MaxRepeats of the server. They were not sent.
	Bounded uint64 `json:"bounded,omitempty"`
	// Durations are the times from the command to the reply, of the operations that were
	// accepted.
	Durations Histogram `json:"durations"`
	// Waits are the times from the command to the first run, of the operations that were run.
	Waits Histogram `json:"waits"`
	// Dials are the times of the dials that have opened a connection.
	Dials Histogram `json:"dials"`
}

// SessionSnapshot is one session of a [Snapshot].
type SessionSnapshot struct {
	Key        Key    `json:"key"`
	State      State  `json:"state"`
	Generation uint64 `json:"generation"`
	// Outstanding is the number of calls without a reply: those in flight, and those that wait.
	Outstanding int `json:"outstanding"`
	// Waiting is the number of calls that wait for a connection, for the server behind a front,
	// or for other calls of the session.
	Waiting int `json:"waiting"`
	// Calls is the number of calls since the session actor was spawned.
	Calls uint64 `json:"calls"`
	// Restarts is how often the session actor was restarted.
	Restarts int `json:"restarts"`
	// Protocol is the negotiated version of MCP, or empty.
	Protocol string `json:"protocol,omitempty"`
	// Stateless is true if the server keeps nothing for the session.
	Stateless bool `json:"stateless,omitempty"`
	// LastUsed is when a call last came or was answered.
	LastUsed time.Time `json:"lastUsed"`
	// Tenant is the tenant that the session belongs to, or empty.
	Tenant string `json:"tenant,omitempty"`
	// Pinned is true if the session is not evicted, see [Pin].
	Pinned bool `json:"pinned,omitempty"`
	// RetryAt is when the next dial is due, or zero.
	RetryAt time.Time `json:"retryAt,omitzero"`
	// Cause is the last fault, or what a front has answered for which calls wait, or empty.
	Cause string `json:"cause,omitempty"`
	// Supervisor is the id of the PID of the supervisor.
	Supervisor string `json:"supervisor,omitempty"`
}

// Counters has numbers since the start of the supervisor.
type Counters struct {
	Calls    uint64 `json:"calls"`    // operations
	Dials    uint64 `json:"dials"`    // attempts to open a connection
	Opened   uint64 `json:"opened"`   // sessions that had their first connection
	Closed   uint64 `json:"closed"`   // sessions that had a connection and are closed
	Evicted  uint64 `json:"evicted"`  // sessions that were told to drain for a cap, a quota or the idle timeout
	Expired  uint64 `json:"expired"`  // MCP sessions that the server no longer knew
	Lost     uint64 `json:"lost"`     // connections that broke
	GaveUp   uint64 `json:"gaveUp"`   // how often the strategy gave up a session
	Restarts uint64 `json:"restarts"` // restarts of session actors
	Replayed uint64 `json:"replayed"` // further runs of operations
	// Dropped counts events, notifications and dead letters that were dropped because the handlers of
	// the EventStream were too slow, notifications that a server sent too fast, and messages to processes
	// that do not return.
	Dropped uint64 `json:"dropped"`
	// Strays counts answers of servers that were dropped because they belong to other
	// connections.
	Strays uint64 `json:"strays"`
	// TextSkipped is how many bytes stdio servers wrote to their stdout that are no messages.
	TextSkipped uint64 `json:"textSkipped"`
	// LinesDropped counts log lines that were dropped because the writer was too slow.
	LinesDropped uint64 `json:"linesDropped"`
}

// RequestID returns the id of the command.
func (m *Snapshot) RequestID() string { return m.ID }

// IgnoreDeadLetterLogging keeps replies to an actor that has stopped out of
// Proto.Actor's dead letter log.
func (*Snapshot) IgnoreDeadLetterLogging() {}

func (*Snapshot) reply() {}
