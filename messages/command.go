package messages

import (
	"log/slog"
	"reflect"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Command is a message to the supervisor's PID. Every command but [Cancel] gets exactly
// one [Reply], which is sent to the sender of the command; after the supervisor has
// stopped, the reply is a [Failure] with [CodeClosed]. Commands are sent as pointers; a
// value is accepted as well. A command of a type outside this package is rejected.
type Command interface {
	// RequestID returns the id that the caller has given the command. The reply carries
	// it, and [Cancel] refers to it.
	RequestID() string
	command()
}

// Operation is a command that runs on the session of one key.
type Operation interface {
	Command
	// Head returns the header.
	Head() *Header
	// Method returns the MCP method, such as "tools/call".
	Method() string
	// Validate returns an error if a parameter is missing.
	Validate() error
	// Idempotent reports whether running the operation twice has the effect of running it
	// once: it only reads, or it sets something to a given value. An idempotent operation
	// that was lost is replayed by default, see [Replay].
	Idempotent() bool
	// target returns what TargetOf does.
	target() string
}

// With returns a copy of an operation that carries another header.
func With(op Operation, h Header) Operation {
	from := reflect.ValueOf(op).Elem()
	to := reflect.New(from.Type())
	to.Elem().Set(from)
	copied := to.Interface().(Operation)
	*copied.Head() = h
	return copied
}

// Replay says whether a call that was sent and not answered, and so may have run, is
// replayed. A call that certainly did not run is replayed with every Replay but
// [ReplayNever].
type Replay uint8

const (
	// ReplaySafe replays operations that are idempotent, and calls of tools that the
	// server has annotated with readOnlyHint or idempotentHint. It is the default.
	ReplaySafe Replay = iota
	// ReplayNever replays nothing, not even a call that certainly did not run. A call that has only
	// waited for its session is no replay on the next one.
	ReplayNever
	// ReplayAlways replays every operation: the caller knows that running it twice does no
	// harm.
	ReplayAlways
)

// Header is part of every operation. An operation prints as its header, so that its
// arguments stay out of logs.
type Header struct {
	notIdempotent
	// Key names the session, which is opened on first use.
	Key Key
	// ID is chosen by the caller. The reply carries it, and [Cancel] refers to it. It
	// should be unique among the operations on the key. It may be empty if the operation
	// is never cancelled.
	ID string
	// Deadline is the latest time of the reply. Zero means that the operation has the
	// configured call timeout.
	Deadline time.Time
	// WaitUntil is the latest time at which the operation waits: for its session, or for other
	// calls of it. If it still waits then, it fails with [CodeUnavailable] and the last cause,
	// and certainly did not run. The operation may run for longer, until Deadline. One that was
	// sent, and may have run, is not concerned. With a time that has passed, the operation runs
	// only if its session is open and can run it at once; if there is none, one is opened. Zero
	// means that it may wait until Deadline.
	WaitUntil time.Time
	// Quiet is how long the operation may run without a sign of life. After that it fails with [CodeQuiet],
	// may have run, and is cancelled on the server. Progress starts the time anew, and so does each state of a
	// task, see [TaskChanged]. The time does not run while a question of the server is open, or before a task
	// is asked for again. The server is asked for progress, also without a Subscriber. Deadline bounds all of
	// it. Zero, a negative value, and one that ends after Deadline mean that only Deadline counts.
	Quiet time.Duration
	// Replay says whether the operation is replayed when its answer was lost.
	Replay Replay
	// Subscriber gets the [Progress] of the operation, before the reply. The Subscriber of
	// a [Subscribe] gets each [ResourceUpdated] of the resource. With nil, the server is
	// asked for progress only if Quiet is set.
	Subscriber *actor.PID
	// Attributes are what the caller says about the operation. Interceptors and credentials
	// can read them.
	Attributes Attributes
	// Trace links the operation to the trace of its caller. Its requests carry it to the
	// server. Interceptors and credentials can read it.
	Trace Trace
	// Owner is the actor that the operation belongs to, usually the one that asks. When it
	// terminates, the operation is cancelled as by [Cancel]. An operation whose owner
	// has terminated before it came is not sent. With nil, the operation runs until its
	// deadline. The owner must be an actor. To bind a whole scope, see [Bind].
	Owner *actor.PID
	// Handler gets the requests that the server sends for the operation. With nil, the
	// handler of the scope gets them, see [Bind], or else the supervisor's.
	Handler *actor.PID
	PassOn
}

// To returns the header of an operation on the session of a server and a scope.
func To(server, scope string) Header {
	return Header{Key: Key{Server: server, Scope: scope}}
}

// Head returns the header itself.
func (h *Header) Head() *Header { return h }

// RequestID returns the id.
func (h *Header) RequestID() string { return h.ID }

// Validate returns nil, for operations without parameters.
func (h *Header) Validate() error { return nil }

// String returns the key and the id, which are not secret.
func (h Header) String() string { return h.Key.String() + "#" + h.ID }

// LogValue returns the key and the id, which are not secret.
func (h Header) LogValue() slog.Value {
	return slog.GroupValue(slog.String("key", h.Key.String()), slog.String("id", h.ID))
}

func (*Header) command()       {}
func (*Header) target() string { return "" }

// notIdempotent is what an operation is that does not say: idempotent overrides it, because it is
// embedded in the operation itself.
type notIdempotent struct{}

// Idempotent returns false.
func (notIdempotent) Idempotent() bool { return false }

// Cancel cancels the operations of a key that have the given id, wherever they are: they
// are answered with [CodeCancelled], and those that run are cancelled on the server. An
// unknown id is ignored.
//
// Send to: the supervisor.
// Replies: none.
type Cancel struct {
	Key Key `json:"key"`
	// ID is the [Header.ID] of the operations to cancel.
	ID string `json:"id,omitempty"`
}

// RequestID returns the id of the operations to cancel.
func (m *Cancel) RequestID() string { return m.ID }

func (*Cancel) command() {}

// CloseScope closes the sessions of a scope on all servers. Running calls may finish within
// the drain timeout; waiting calls fail with [CodeClosed]. Then the handles that only the scope holds are released, see
// [github.com/mcpactor/mcpactor/mcpbridge.Handle]. Closing a scope that has neither does nothing.
//
// Send to: the supervisor.
// Replies: [Closed] or [Failure].
type CloseScope struct {
	ID    string `json:"id,omitempty"`
	Scope string `json:"scope"`
	// Now closes without draining: running calls are answered with [CodeClosed] at once,
	// and cancelled on the server. They may have run.
	Now bool `json:"now,omitempty"`
	// KeepHandles leaves the handles to the scope, which may come back: those of a kind with Idle end then. Those that are bound to a session
	// end with it.
	KeepHandles bool `json:"keepHandles,omitempty"`
}

// RequestID returns the id of the command.
func (m *CloseScope) RequestID() string { return m.ID }

func (*CloseScope) command() {}

// CloseServer closes the sessions of all scopes on a server. See [CloseScope].
//
// Send to: the supervisor.
// Replies: [Closed] or [Failure].
type CloseServer struct {
	ID     string `json:"id,omitempty"`
	Server string `json:"server"`
	// Now closes without draining, see [CloseScope.Now].
	Now bool `json:"now,omitempty"`
}

// RequestID returns the id of the command.
func (m *CloseServer) RequestID() string { return m.ID }

func (*CloseServer) command() {}

// CloseAll closes all sessions. The supervisor does not stop: a later operation opens a new
// session. See [CloseScope].
//
// Send to: the supervisor.
// Replies: [Closed] or [Failure].
type CloseAll struct {
	ID string `json:"id,omitempty"`
	// Now closes without draining, see [CloseScope.Now].
	Now bool `json:"now,omitempty"`
}

// RequestID returns the id of the command.
func (m *CloseAll) RequestID() string { return m.ID }

func (*CloseAll) command() {}

// DefaultInspectLimit is the default of [Inspect.Limit].
const DefaultInspectLimit = 1000

// Inspect asks for a [Snapshot] of the supervisor. Server, Scope and State select the
// sessions. Without them, all sessions are selected.
//
// If more sessions are selected than Limit, the first ones in this order are listed: by
// state, from draining over broken, connecting and waiting to ready; then by the name of
// the server; then those that have been in their state for longest. The time that a
// snapshot takes grows with the sessions that it lists, and, up to 1,000 of these, not with the other
// sessions. A list of more than 64 sessions is put together in steps, between which other
// messages are handled: the counts are those of the first step, and a session is listed as it was in
// its own. Callers who ask for the same at the same time share the list, which is read-only.
//
// Send to: the supervisor.
// Replies: [Snapshot] or [Failure].
type Inspect struct {
	ID string `json:"id,omitempty"`
	// Server selects the sessions of a server. Empty selects all.
	Server string `json:"server,omitempty"`
	// Scope selects the sessions of a scope. Empty selects all.
	Scope string `json:"scope,omitempty"`
	// State selects the sessions in a state. Empty selects all.
	State State `json:"state,omitempty"`
	// Limit is the maximum number of sessions that are listed. The counts include all
	// selected sessions. Defaults to [DefaultInspectLimit]; -1 lists all.
	Limit int `json:"limit,omitempty"`
}

// RequestID returns the id of the command.
func (m *Inspect) RequestID() string { return m.ID }

func (*Inspect) command() {}
