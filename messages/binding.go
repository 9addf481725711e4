package messages

import (
	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Bind binds a scope to the actors that it belongs to. It replaces what an earlier Bind of the
// scope has set; without Owner, Handler and Subscriber it only removes that. The scope needs no
// session.
//
// The supervisor watches the owner. When the owner terminates, the operations of the scope
// are cancelled as by [Cancel], on all servers, its sessions are closed as by [CloseScope],
// the questions of its servers are [Withdrawn], and the binding is gone. An
// [OwnerTerminated] is published. An owner that terminated before the command came is
// treated in the same way. A restart of the owner by its own supervisor is no termination.
// The owner must be an actor.
//
// Without an owner, a binding ends with another Bind only. At most 65,536 scopes may be bound to
// handlers or subscribers without owners: one more is refused with [CodeBusy], unless the handler of another
// one, or its subscriber if it has no handler, has terminated: that binding is then removed.
//
// Servers only ask for what is declared to them: if that is nothing, a Bind with a Handler is refused with
// [CodeInvalid].
//
// To cancel a single operation with its asker, see [Header.Owner].
//
// Send to: the supervisor.
// Replies: [Bound] or [Failure].
type Bind struct {
	ID string `json:"id,omitempty"`
	// Scope is the scope. Empty means [DefaultScope].
	Scope string `json:"scope"`
	// Owner is the actor that the scope belongs to, or nil. An actor may own any number of
	// scopes.
	Owner *actor.PID `json:"owner,omitempty"`
	// Handler gets the requests of the servers of the scope, in place of the supervisor's
	// handler, unless the operation has a [Header.Handler]. With nil, the supervisor's
	// handler gets them.
	Handler *actor.PID `json:"handler,omitempty"`
	// Capabilities are declared to the servers of the scope, in place of those of the supervisor's
	// configuration: what the client declares on whose behalf the scope calls. With nil, those of the
	// configuration are. They are part of the opening of an MCP session: one that is open keeps what it was
	// told. Bind a scope before its first call, therefore. Scopes that declare different capabilities share no
	// lists, see [Listing]. Read-only once sent.
	Capabilities *mcp.ClientCapabilities `json:"capabilities,omitempty"`
	// Introduction is what the client says of itself on whose behalf the scope calls, or nil. All that is said of
	// Capabilities holds for it, too, where a server heeds it: see [Introduction]. Read-only once sent.
	Introduction *Introduction `json:"introduction,omitempty"`
	// Subscriber gets every [Notification] of the servers of the scope but [Progress], in addition to the
	// EventStream and to the supervisor's subscriber. Its mailbox is not bounded. With nil, nobody else gets
	// them.
	Subscriber *actor.PID `json:"subscriber,omitempty"`
}

// RequestID returns the id of the command.
func (m *Bind) RequestID() string { return m.ID }

func (*Bind) command() {}

// Bound is the reply to [Bind].
type Bound struct {
	ID string `json:"id,omitempty"`
	// Scope is the scope that is bound.
	Scope string `json:"scope"`
}

// RequestID returns the id of the command.
func (m *Bound) RequestID() string { return m.ID }

// IgnoreDeadLetterLogging keeps replies to an actor that has stopped out of
// Proto.Actor's dead letter log.
func (*Bound) IgnoreDeadLetterLogging() {}

func (*Bound) reply() {}
