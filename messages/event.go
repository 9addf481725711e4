package messages

import (
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Event says what happened to a session, or what its server sent without being asked.
// Events are published on the EventStream of the actor system, those of one session in the
// order in which they happened. Subscribers also get each [Notification]. Events contain
// no arguments, no results and no session ids. As JSON they are objects with the names of
// the tags and the name of the event in "type", in which durations are strings such as "1.5s".
// Their method String returns one line, without what a server says in its own words.
type Event interface {
	// EventName returns the name, such as "session_opened": that of the type in snake case.
	EventName() string
	// GetStamp returns the stamp.
	GetStamp() Stamp
	event()
}

// Stamp says which session an event is about, and when it happened.
type Stamp struct {
	Key        Key       `json:"key"`
	Generation uint64    `json:"generation"`
	Time       time.Time `json:"time"`
	// Supervisor is the id of the PID of the supervisor: an actor system may have several.
	Supervisor string `json:"supervisor"`
}

// GetStamp returns the stamp itself.
func (s Stamp) GetStamp() Stamp { return s }

// IgnoreDeadLetterLogging keeps events for an actor that has stopped out of Proto.Actor's
// dead letter log.
func (Stamp) IgnoreDeadLetterLogging() {}

func (Stamp) event() {}

// SessionOpened says that a key has its first connection.
type SessionOpened struct {
	named[SessionOpened]
	Stamp
	// Attached is true if the connection resumes an MCP session from the store, which was
	// opened before a restart of this process.
	Attached bool `json:"attached"`
	// Protocol is the negotiated version of MCP, such as "2025-11-25".
	Protocol string `json:"protocol,omitempty"`
	// Elapsed is how long the dial took.
	Elapsed time.Duration `json:"elapsed"`
}

// SessionExpired says that the server no longer knows the MCP session.
type SessionExpired struct {
	named[SessionExpired]
	Stamp
	Cause string `json:"cause,omitempty"`
}

// SessionLost says that the connection of a session broke.
type SessionLost struct {
	named[SessionLost]
	Stamp
	Cause string `json:"cause,omitempty"`
}

// SessionRestarting says that a session is going to dial again.
type SessionRestarting struct {
	named[SessionRestarting]
	Stamp
	// Attempt is the number of failures that the strategy still remembers.
	Attempt int `json:"attempt"`
	// Delay is the time before the dial.
	Delay time.Duration `json:"delay"`
	Cause string        `json:"cause,omitempty"`
}

// SessionRestarted says that a session has a connection again.
type SessionRestarted struct {
	named[SessionRestarted]
	Stamp
	// Attached is true if the connection resumes the MCP session: its state on the server
	// is kept, and the generation is the same.
	Attached bool `json:"attached"`
	// Protocol is the negotiated version of MCP.
	Protocol string `json:"protocol,omitempty"`
	// Elapsed is the time since the fault, or, if nobody waited for the session then, since the
	// call that wanted it again.
	Elapsed time.Duration `json:"elapsed"`
	// Lifetime is how long the MCP session that has ended was open, or 0 if it was resumed.
	Lifetime time.Duration `json:"lifetime"`
}

// CallReplayed says that an operation is run again, see [Receipt.Attempt].
type CallReplayed struct {
	named[CallReplayed]
	Stamp
	// ID is the operation's [Header.ID].
	ID string `json:"id,omitempty"`
	// Method is the method of MCP, such as "tools/call".
	Method string `json:"method"`
	// Target is the name of the tool or prompt, or the URI of the resource, see [TargetOf].
	Target string `json:"target,omitempty"`
	// Attempt is the number of the run, from 2.
	Attempt int `json:"attempt"`
}

// TaskChanged says that a server has turned a call into a task (SEP-2663), or that the state of the task has changed.
type TaskChanged struct {
	named[TaskChanged]
	Stamp
	// Operation is the call.
	Operation OperationRef `json:"operation"`
	// Status is "working", "input_required", "completed", "failed" or "cancelled".
	Status string `json:"status"`
	// Message is what the server says about the state, or empty. It must not be trusted.
	Message string `json:"message,omitempty" log:"-"`
}

// SessionGaveUp says that the strategy has given up a session: it does not dial before
// RetryAt, unless the server has refused its credentials and they have changed.
type SessionGaveUp struct {
	named[SessionGaveUp]
	Stamp
	Cause string `json:"cause,omitempty"`
	// RetryAt is when a call may dial again.
	RetryAt time.Time `json:"retryAt,omitzero"`
}

// EvictReason says why a session was evicted.
type EvictReason string

// The reasons for an eviction.
const (
	// EvictCap: another key needed the slot, under the cap of all sessions.
	EvictCap EvictReason = "cap"
	// EvictServerCap: another key of the same server needed the slot, or a reload lowered the
	// cap of the server.
	EvictServerCap EvictReason = "server-cap"
	// EvictTenantQuota: another key of the same tenant needed the slot.
	EvictTenantQuota EvictReason = "tenant-quota"
	// EvictIdle: the session was not used for the idle timeout.
	EvictIdle EvictReason = "idle"
)

// SessionEvicted says that a session drains because of a cap, a quota or the idle timeout.
type SessionEvicted struct {
	named[SessionEvicted]
	Stamp
	Reason EvictReason `json:"reason"`
}

// SessionClosed says that a session is closed.
type SessionClosed struct {
	named[SessionClosed]
	Stamp
	// Cause is why the MCP session could not be closed on the server, or empty.
	Cause string `json:"cause,omitempty"`
	// Lifetime is how long the MCP session was open.
	Lifetime time.Duration `json:"lifetime"`
}

// HandleMinted says that a tool has minted a handle that is declared, see [github.com/mcpactor/mcpactor/mcpbridge.Handle]. Its key is
// that of the call. No event has the handle itself, which may be a secret.
type HandleMinted struct {
	named[HandleMinted]
	Stamp
	// Mint is the tool that has minted it.
	Mint string `json:"mint"`
}

// HandleReleased says that a handle is released.
type HandleReleased struct {
	named[HandleReleased]
	Stamp
	Mint string `json:"mint"`
	// Gone is true if the server said that there was no such handle any more.
	Gone bool `json:"gone,omitempty"`
}

// HandleLost says that a handle that somebody holds is no more, or that a mint was sent and its answer was lost.
type HandleLost struct {
	named[HandleLost]
	Stamp
	Mint  string `json:"mint"`
	Cause string `json:"cause,omitempty"`
}

// HandleLeft says that nobody holds a handle any more, and that it is not released, or perhaps not.
type HandleLeft struct {
	named[HandleLeft]
	Stamp
	Mint   string `json:"mint"`
	Reason string `json:"reason,omitempty"`
}

// OwnerTerminated says that the owner of scopes or operations has terminated, see [Bind] and
// [Header.Owner]. Its stamp has no key and no generation.
type OwnerTerminated struct {
	named[OwnerTerminated]
	Stamp
	// Owner is the address and the id of the actor: "address/id".
	Owner string `json:"owner"`
	// Scopes are the scopes that were bound to it, sorted. Read-only.
	Scopes []string `json:"scopes,omitempty"`
	// Cancelled is how many operations had no reply when it terminated.
	Cancelled int `json:"cancelled"`
}

// CatalogueChanged says that a list was fetched after which scopes that have none of their own see something else: another
// list, or one at all after a failure, or one that is no longer stale. Its stamp has no scope and no generation.
type CatalogueChanged struct {
	named[CatalogueChanged]
	Stamp
	// Method is the method of the list, such as "tools/list".
	Method string `json:"method"`
}

// Notification is an [Event] that a server has sent. All but [Progress] are published on
// the EventStream, and sent to the subscriber of the supervisor. If the handlers of the
// EventStream are slower than a session sends notifications, those beyond a bound are
// dropped, and counted in [Counters].
type Notification interface {
	Event
	notification()
}

// notified marks notifications.
type notified struct{}

func (notified) notification() {}

// ToolsChanged says that the server's list of tools has changed.
type ToolsChanged struct {
	named[ToolsChanged]
	Stamp
	notified
}

// PromptsChanged says that the server's list of prompts has changed.
type PromptsChanged struct {
	named[PromptsChanged]
	Stamp
	notified
}

// ResourcesChanged says that the server's list of resources, or of resource templates, has
// changed.
type ResourcesChanged struct {
	named[ResourcesChanged]
	Stamp
	notified
}

// ResourceUpdated says that a resource has changed, or may have changed while there was no
// connection: after a restart it comes for each resource that is subscribed again. The
// subscriber of the [Subscribe] for the resource gets it, too.
type ResourceUpdated struct {
	named[ResourceUpdated]
	Stamp
	notified
	URI string `json:"uri"`
	// Meta is what the server has added to the notification. It must not be trusted. Read-only.
	Meta mcp.Meta `json:"meta,omitempty" log:"-"`
	AsSent
}

// ServerLog is a log message of the server, see [SetLogLevel].
type ServerLog struct {
	named[ServerLog]
	Stamp
	notified
	// Level is one of the levels of [SetLogLevel].
	Level string `json:"level"`
	// Logger is the name of the logger, or empty.
	Logger string `json:"logger,omitempty" log:"-"`
	// Data is the message: any decoded JSON, which must not be trusted. Read-only.
	Data any `json:"data,omitempty" log:"-"`
	// Operation is the operation that the message belongs to, or empty if that is not known, as in
	// [Origin].
	Operation OperationRef `json:"operation,omitzero"`
	// Meta is what the server has added to the notification. It must not be trusted. Read-only.
	Meta mcp.Meta `json:"meta,omitempty" log:"-"`
	AsSent
}

// ElicitationCompleted says that the user has done what an [Elicit] with a URL asked for, outside of
// the agent.
type ElicitationCompleted struct {
	named[ElicitationCompleted]
	Stamp
	notified
	// ElicitationID is that of the parameters of the [Elicit].
	ElicitationID string `json:"elicitationId" log:"-"`
	// Meta is what the server has added to the notification. It must not be trusted. Read-only.
	Meta mcp.Meta `json:"meta,omitempty" log:"-"`
	AsSent
}

// Progress is the progress of an operation. Only the subscriber of the operation gets it,
// before the reply.
type Progress struct {
	named[Progress]
	Stamp
	notified
	// ID is the operation's [Header.ID].
	ID string `json:"id"`
	// Progress grows towards Total.
	Progress float64 `json:"progress"`
	// Total is 0 if it is not known.
	Total float64 `json:"total,omitempty"`
	// Message says what the server is doing, or is empty.
	Message string `json:"message,omitempty" log:"-"`
	// Meta is what the server has added to the notification. It must not be trusted. Read-only.
	Meta mcp.Meta `json:"meta,omitempty" log:"-"`
	AsSent
}
