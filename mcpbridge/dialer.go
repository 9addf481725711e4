package mcpbridge

import (
	"context"

	"github.com/mcpactor/mcpactor/messages"
)

// DialRequest says what to dial.
type DialRequest struct {
	Key messages.Key
	// Resume is the session to attach to, if the server still knows it. If
	// not, a new one is made. Nil always makes a new one.
	Resume *Resume
	// Only forbids a new session: if Resume cannot be attached to, the dial fails. Set it to
	// end a session.
	Only bool
	// Refused is the error with which the credentials of the key were refused before,
	// or nil. As long as the key has the same credentials, Dial sends nothing and
	// returns the same error.
	Refused *Error
	// Answered is called at most once, from any goroutine, when the server has
	// answered the handshake. The dial may take longer than that, and may fail. It
	// must not block. It may be nil.
	Answered func()
	// Down is called at most once, from any goroutine, when the session ends
	// by itself: [Error.Session] says how. It is not called for an end that an operation
	// reports, nor after Close has begun. It must not block.
	Down func(*Error)
	// Heard is called with the notifications of the server, in their order, without a
	// stamp. of is the operation that a [messages.Progress] belongs to, else nil. It
	// must not block. It may be nil.
	Heard func(n messages.Notification, of messages.Operation)
	// Ask is called with the requests of the server, each in a goroutine of its own, without an
	// origin. It may block until ctx ends. If it is nil, all requests are refused.
	Ask func(ctx context.Context, req messages.Request) messages.Answer
	// Roots are the roots that the server gets from the beginning, or nil.
	Roots *messages.SetRoots
}

// Dialer opens sessions. Wrap a Dialer to inject faults, or to observe.
type Dialer interface {
	// Dial opens a session, or fails with an [*Error], at the latest soon after ctx ends.
	// A dial that failed leaves nothing open.
	Dial(ctx context.Context, req DialRequest) (Conn, error)
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
