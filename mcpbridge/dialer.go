package mcpbridge

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// Conn is one MCP session with the transport under it.
type Conn interface {
	// Do runs one operation until its answer, or until ctx ends. The error is
	// an [*Error].
	Do(ctx context.Context, op messages.Operation) (messages.Result, error)
	// Hint reports whether the server annotated a tool as read-only or
	// idempotent, as far as that is known: from a [messages.ListTools] on this
	// session. It does not block.
	Hint(tool string) (safe, known bool)
	// Info describes the session.
	Info() Info
	// Resume returns what it takes to attach to the session again, or nil
	// where that cannot be.
	Resume() *Resume
	// Close ends the session on the server, and its transport, before ctx
	// ends. It may be called again when it failed. Operations that are still
	// running fail.
	Close(ctx context.Context) error
	// Detach ends the transport only: over HTTP the session stays open on the
	// server, to be resumed, or to be ended by a Close after all.
	Detach(ctx context.Context) error
}

// Info describes a session.
type Info struct {
	// Server is what the server said of itself. Read-only.
	Server *mcp.InitializeResult
	// Stateless is true over HTTP without a session id: nothing can expire.
	Stateless bool
	// Attached is true when the session is the one that [DialRequest.Resume]
	// named.
	Attached bool
}

// DialRequest says what to dial.
type DialRequest struct {
	Key messages.Key
	// Resume is the session to attach to, if the server still knows it. If
	// not, a new one is made. Nil always makes a new one.
	Resume *Resume
	// Only is set to end a session: when it cannot be attached to, none is made.
	Only bool
	// Refused is the error with which the credentials of the key were refused before,
	// or nil. As long as the key has the same credentials, Dial sends nothing and
	// returns it again, itself.
	Refused *Error
	// Answered is called at most once, from any goroutine, when the server has
	// answered the handshake. The dial may take longer than that, and may fail. It
	// must not block. With nil, nobody wants to know.
	Answered func()
	// Down is called at most once, from any goroutine, when the session ends
	// by itself: [Error.Session] says how. Not called for what an operation
	// reports, nor after Close has begun. It must not block.
	Down func(*Error)
	// Heard is called with what the server says by itself, in its order; the stamp
	// is not set. With a [messages.Progress] comes the operation that it is of. It
	// must not block. With nil, nobody listens.
	Heard func(n messages.Notification, of messages.Operation)
	// Ask is called with what the server asks, in a goroutine of its own; the origin
	// is not set. It may block until ctx ends. With nil, all is refused.
	Ask func(ctx context.Context, req messages.Request) messages.Answer
	// Roots are what the server gets to know as roots from the beginning, or nil.
	Roots *messages.SetRoots
}

// Dialer opens sessions. Wrap one to inject faults, or to observe.
type Dialer interface {
	// Dial opens a session, or fails with an [*Error] soon after ctx ends;
	// then nothing is left open.
	Dial(ctx context.Context, req DialRequest) (Conn, error)
}

// ReadOnly reports whether an operation is read-only by protocol, or says what
// shall be, so that running it twice does no harm: all but calls of tools.
func ReadOnly(op messages.Operation) bool {
	_, isCall := op.(*messages.CallTool)
	return !isCall
}

// Bridge is the [Dialer] for a list of servers. Package
// [github.com/mcpactor/mcpactor/mcpbridge/dialer] makes it. Its sessions share one HTTP
// client per server.
type Bridge interface {
	Dialer
	// Set replaces the list of servers, which must be valid. A server that is the same as
	// before keeps its connections. Open sessions are not touched.
	Set(servers []Server)
	// Prune closes the idle HTTP connections to servers that Set has replaced. Call it
	// when their sessions are closed.
	Prune()
	// Strays returns how many answers were dropped because they belong to other
	// connections: some servers send each answer to all of their sessions.
	Strays() uint64
	// Close closes the idle HTTP connections. Call it when all sessions are closed.
	Close()
}
