package messages

import (
	"log/slog"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Reply is the one answer to a command: a result or a [Failure].
type Reply interface {
	// RequestID is the id that the command carried.
	RequestID() string
	reply()
}

// Result is a reply of an operation that went well.
type Result interface {
	Reply
	// GetReceipt returns what all results carry.
	GetReceipt() *Receipt
}

// Receipt is what every result carries. It keeps results out of logs: all of
// them print as their receipt.
type Receipt struct {
	Key Key
	// ID is the operation's [Header.ID].
	ID string
	// Generation counts the MCP sessions that the key has had, from 1. When it
	// grows, what the server kept for the session before is gone.
	Generation uint64
	// Replayed is true when the operation was sent a second time, after an
	// expiry or a loss.
	Replayed bool
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

// IgnoreDeadLetterLogging keeps a reply to an actor that has stopped meanwhile
// out of Proto.Actor's dead letter log.
func (r *Receipt) IgnoreDeadLetterLogging() {}

func (*Receipt) reply() {}

// ToolResult is the reply to [CallTool]. A tool's own error is data:
// Result.IsError is set, and the call counts as answered.
type ToolResult struct {
	Receipt
	Result *mcp.CallToolResult
}

// ToolList is the reply to [ListTools], with the tools of all pages.
type ToolList struct {
	Receipt
	Result *mcp.ListToolsResult
}

// ResourceList is the reply to [ListResources], with the resources of all pages.
type ResourceList struct {
	Receipt
	Result *mcp.ListResourcesResult
}

// ResourceTemplateList is the reply to [ListResourceTemplates], with the
// templates of all pages.
type ResourceTemplateList struct {
	Receipt
	Result *mcp.ListResourceTemplatesResult
}

// ResourceContents is the reply to [ReadResource].
type ResourceContents struct {
	Receipt
	Result *mcp.ReadResourceResult
}

// PromptList is the reply to [ListPrompts], with the prompts of all pages.
type PromptList struct {
	Receipt
	Result *mcp.ListPromptsResult
}

// Prompt is the reply to [GetPrompt].
type Prompt struct {
	Receipt
	Result *mcp.GetPromptResult
}

// Completion is the reply to [Complete].
type Completion struct {
	Receipt
	Result *mcp.CompleteResult
}

// Ack is the reply to [Subscribe], [Unsubscribe], [SetLogLevel] and [SetRoots]: the
// server has accepted it.
type Ack struct {
	Receipt
}

// Pong is the reply to [Ping].
type Pong struct {
	Receipt
}

// SessionInfo is the reply to [Open]. It has no session id: that is a secret.
type SessionInfo struct {
	Receipt
	// Server is what the server says of itself: capabilities, name, version,
	// instructions, negotiated protocol version. Read-only.
	Server *mcp.InitializeResult
	// Stateless is true for a session without a session id over HTTP: it
	// cannot expire, and keeps nothing on the server.
	Stateless bool
}

// Closed is the reply to [CloseScope], [CloseServer] and [CloseAll].
type Closed struct {
	ID string
	// Sessions is how many sessions were closed.
	Sessions int
	// Left are the keys that could not be closed, with the reason. Closing
	// again tries them again.
	Left []Left
}

// Left is a session that could not be closed.
type Left struct {
	Key    Key    `json:"key"`
	Reason string `json:"reason"`
}

// RequestID returns the id of the command.
func (m *Closed) RequestID() string { return m.ID }

// IgnoreDeadLetterLogging keeps a reply to an actor that has stopped meanwhile
// out of Proto.Actor's dead letter log.
func (*Closed) IgnoreDeadLetterLogging() {}

func (*Closed) reply() {}

// State is the state of a session, in the words of the design.
type State string

// The states of a session.
const (
	// StateWaiting is a session that is not open: it waits for its turn to dial, for
	// its server to come back, for a backoff to pass, or for a call.
	StateWaiting State = "waiting"
	// StateConnecting is a session that is being dialed.
	StateConnecting State = "connecting"
	// StateReady is a session that takes calls.
	StateReady State = "ready"
	// StateDraining is a session that finishes what it has, and closes.
	StateDraining State = "draining"
	// StateBroken is a key without a session that was given up, and that nobody has
	// tried to open again since.
	StateBroken State = "broken"
)

// Snapshot is the reply to [Inspect]: the supervisor at one moment. It is
// immutable.
type Snapshot struct {
	ID   string    `json:"-"`
	Time time.Time `json:"time"`
	// Sessions are those that were asked for, sorted by key, and bounded by
	// [Inspect.Limit].
	Sessions []SessionSnapshot `json:"sessions"`
	// Total is how many sessions there are that were asked for.
	Total int `json:"total"`
	// States is how many of them are in which state.
	States   map[State]int `json:"states"`
	Counters Counters      `json:"counters"`
	// Waiting is how many calls of all sessions wait: for a session, for other calls of
	// theirs, or in interceptors that have not passed them on.
	Waiting int `json:"waiting"`
	// Open counts the slots in use: sessions that are open, being opened or
	// draining. It never exceeds Cap.
	Open int `json:"open"`
	Cap  int `json:"cap"`
}

// SessionSnapshot is one key of a [Snapshot].
type SessionSnapshot struct {
	Key        Key    `json:"key"`
	State      State  `json:"state"`
	Generation uint64 `json:"generation"`
	// Outstanding is how many operations were accepted and not yet answered.
	Outstanding int `json:"outstanding"`
	// Calls is how many operations the key has had since its session actor
	// was spawned.
	Calls uint64 `json:"calls"`
	// Protocol is the version of MCP that was agreed on, or empty.
	Protocol string `json:"protocol,omitempty"`
	// Stateless is true for a session that keeps nothing on the server.
	Stateless bool `json:"stateless,omitempty"`
	// LastUsed is when an operation last came in or was answered.
	LastUsed time.Time `json:"lastUsed"`
	// RetryAt is when the next attempt to dial is due, or zero.
	RetryAt time.Time `json:"retryAt,omitzero"`
	// Cause is what the last fault was, or empty.
	Cause string `json:"cause,omitempty"`
}

// Counters count since the supervisor was started.
type Counters struct {
	Calls    uint64 `json:"calls"`
	Dials    uint64 `json:"dials"`
	Opened   uint64 `json:"opened"`
	Closed   uint64 `json:"closed"`
	Evicted  uint64 `json:"evicted"`
	Expired  uint64 `json:"expired"`
	Lost     uint64 `json:"lost"`
	GaveUp   uint64 `json:"gaveUp"`
	Restarts uint64 `json:"restarts"`
	// Dropped counts events, those of servers included, that the handlers of the
	// EventStream were too slow for.
	Dropped uint64 `json:"dropped"`
	// Strays counts answers of servers that belong to other connections, and were dropped.
	Strays uint64 `json:"strays"`
	// LinesDropped counts log lines that the writer was too slow for.
	LinesDropped uint64 `json:"linesDropped"`
}

// RequestID returns the id of the command.
func (m *Snapshot) RequestID() string { return m.ID }

// IgnoreDeadLetterLogging keeps a reply to an actor that has stopped meanwhile
// out of Proto.Actor's dead letter log.
func (*Snapshot) IgnoreDeadLetterLogging() {}

func (*Snapshot) reply() {}
