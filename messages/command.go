package messages

import (
	"log/slog"
	"reflect"
	"time"

	"github.com/asynkron/protoactor-go/actor"
)

// Command is anything that may be sent to the supervisor's PID. Every command
// but [Cancel] gets exactly one [Reply], sent to the sender of the message; when the
// supervisor has stopped, a [Failure] with [CodeClosed]. Commands are sent as pointers;
// a value is understood as well. A type of the caller's around a command is refused.
type Command interface {
	// RequestID is the caller's own name for the command. It comes back in the
	// reply, and [Cancel] refers to it.
	RequestID() string
	command()
}

// Operation is a command that runs on the session of one key.
type Operation interface {
	Command
	// Head returns what all operations carry.
	Head() *Header
	// Method is the operation's MCP method, such as "tools/call".
	Method() string
	// Validate reports a parameter that is missing.
	Validate() error
	// Idempotent reports whether running the operation twice does no harm: it only
	// reads, or it sets something to a given value. One that is lost is replayed without
	// the caller's permission; see [Replay]. An operation that does not say so itself is
	// not idempotent.
	Idempotent() bool
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

// Replay says whether a call that was sent and not answered, and so may have
// run, may be run again. A call that provably did not run is replayed under
// all of them but [ReplayNever].
type Replay uint8

const (
	// ReplaySafe replays operations that are idempotent, and calls of tools that the
	// server annotated with readOnlyHint or idempotentHint. It is the default.
	ReplaySafe Replay = iota
	// ReplayNever replays nothing: not even a call that provably did not run.
	ReplayNever
	// ReplayAlways replays whatever was lost: the caller knows that running it
	// twice does no harm.
	ReplayAlways
)

// Header is what every operation carries. It keeps arguments out of logs: all
// operations print as their header.
type Header struct {
	// Key names the session. It is opened on first use.
	Key Key
	// ID is the caller's name for the operation: it comes back in the reply,
	// and [Cancel] refers to it. It should be unique among the caller's
	// operations on this key. Empty is fine for what is never cancelled.
	ID string
	// Deadline is when the caller wants an answer at the latest. Zero means
	// the configured call timeout from now.
	Deadline time.Time
	// Replay says whether the operation may run twice when its answer was lost.
	Replay Replay
	// Subscriber gets, before the reply, the [Progress] that the server tells of; and
	// of a [Subscribe] all its [ResourceUpdated]. With nil, the server is not asked
	// for progress.
	Subscriber *actor.PID
}

// To returns the header of an operation on the session of server and scope.
func To(server, scope string) Header {
	return Header{Key: Key{Server: server, Scope: scope}}
}

// Head returns the header itself.
func (h *Header) Head() *Header { return h }

// RequestID returns the caller's name for the operation.
func (h *Header) RequestID() string { return h.ID }

// Validate accepts operations without parameters of their own.
func (h *Header) Validate() error { return nil }

// Idempotent returns false, for operations that do not say anything else.
func (h *Header) Idempotent() bool { return false }

// String returns the key and the id, and nothing that could be a secret.
func (h *Header) String() string { return h.Key.String() + "#" + h.ID }

// LogValue returns the key and the id, and nothing that could be a secret.
func (h *Header) LogValue() slog.Value {
	return slog.GroupValue(slog.String("key", h.Key.String()), slog.String("id", h.ID))
}

func (*Header) command() {}

// Cancel gives up the operations of a key that carry the given id, wherever
// they are: they are answered with [CodeCancelled], and the server is told of
// those it is working on. An id that is not (or no longer) known does nothing.
//
// Send to: the supervisor.
// Replies: none.
type Cancel struct {
	Key Key
	// ID is the [Header.ID] of the operations to cancel.
	ID string
}

// RequestID returns the id of the operations to cancel.
func (m *Cancel) RequestID() string { return m.ID }

func (*Cancel) command() {}

// CloseScope closes the sessions of a scope on all servers. Calls in flight
// may finish within the drain timeout, calls that wait are refused with
// [CodeClosed]. Closing twice is fine.
//
// Send to: the supervisor.
// Replies: [Closed] or [Failure].
type CloseScope struct {
	ID    string
	Scope string
}

// RequestID returns the caller's name for the command.
func (m *CloseScope) RequestID() string { return m.ID }

func (*CloseScope) command() {}

// CloseServer closes the sessions of all scopes on a server, as [CloseScope]
// does.
//
// Send to: the supervisor.
// Replies: [Closed] or [Failure].
type CloseServer struct {
	ID     string
	Server string
}

// RequestID returns the caller's name for the command.
func (m *CloseServer) RequestID() string { return m.ID }

func (*CloseServer) command() {}

// CloseAll closes all sessions, as [CloseScope] does. The supervisor goes on:
// a later operation opens a new session.
//
// Send to: the supervisor.
// Replies: [Closed] or [Failure].
type CloseAll struct {
	ID string
}

// RequestID returns the caller's name for the command.
func (m *CloseAll) RequestID() string { return m.ID }

func (*CloseAll) command() {}

// DefaultInspectLimit is how many sessions a [Snapshot] has, unless [Inspect] says
// otherwise.
const DefaultInspectLimit = 1000

// Inspect asks for a [Snapshot] of the supervisor. Server, Scope and State choose the
// sessions; with none of them it is all.
//
// When more sessions match than Limit lets through, the ones that draw attention
// come first: those that are draining, then broken, connecting, waiting and ready
// ones, in each state the ones of the server whose name sorts first, and of a server those that
// have been in that state for longest. The answer takes time that grows with the
// sessions in it, not with those that there are.
//
// Send to: the supervisor.
// Replies: [Snapshot] or [Failure].
type Inspect struct {
	ID string
	// Server is the name of the server whose sessions are asked for, or empty.
	Server string
	// Scope is the scope whose sessions are asked for, or empty for all scopes.
	Scope string
	// State is the state that the sessions are in that are asked for, or empty.
	State State
	// Limit is how many sessions are listed at most. The counts are those of all that
	// match. Defaults to [DefaultInspectLimit]; -1 lists all.
	Limit int
}

// RequestID returns the caller's name for the command.
func (m *Inspect) RequestID() string { return m.ID }

func (*Inspect) command() {}
