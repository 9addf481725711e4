// Package dial is what the actors and the bridge know of each other: the actors dial a server, and get a connection.
package dial

import (
	"context"
	"log/slog"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Request says what to dial.
type Request struct {
	Key messages.Key
	// Resume is the session to resume. If the server no longer knows it, or if Resume is
	// nil, a new session is opened.
	Resume *mcpbridge.Resume
	// Only forbids a new session: if the session of Resume cannot be resumed, the dial fails. A
	// supervisor sets it to close a session that has no connection.
	Only bool
	// Refused is the error with which the credentials of the key were refused before,
	// or nil. As long as the key has the same credentials, Dial sends nothing and
	// returns the same error.
	Refused *mcpbridge.Error
	// Resolved is called once, before anything is sent or started, with the result of
	// [mcpbridge.Server.PerKey]. It is not called for servers without PerKey. It may block until ctx
	// ends. If it returns an error, Dial fails with that error. It may be nil.
	Resolved func(ctx context.Context, server *mcpbridge.Server) error
	// Answered is called at most once, from any goroutine, when the server has
	// answered the handshake. The dial may take longer than that, and may fail. It
	// must not block. It may be nil.
	Answered func()
	// Admit asks for a permit to open a second session of the key, which shows whether the
	// server still knows the first. It may block until ctx ends. Call opened when the second session is
	// open. Call ended when it has ended, could not be opened, or is adopted by a dial of the key. If Admit
	// is nil, no permit is needed.
	Admit func(ctx context.Context) (opened, ended func(), err error)
	// Down is called at most once, from any goroutine, when the session ends by itself.
	// [mcpbridge.Error.Session] says what became of the session. Down is not called for an end that an
	// operation reports, nor after Close has begun. It must not block.
	Down func(*mcpbridge.Error)
	// Heard is called with each notification of the server, in the order in which they
	// arrive. The notifications have no stamp. of is the operation that a
	// [messages.Progress] belongs to, or else nil. Heard must not block, and may be nil.
	Heard func(n messages.Notification, of messages.Operation)
	// Ask is called with each question of the server, in a goroutine of its own. The
	// questions have no origin. of is the operation that the question belongs to, or nil if that
	// is not known. Ask may block until ctx ends. If it is nil, all questions are refused.
	Ask func(ctx context.Context, req messages.Request, of messages.Operation) messages.Answer
	// Store remembers which protocols a stdio server speaks, so that a later process need not find that out. It may be nil.
	// Its methods must return, with an error if they take long, and must not panic: a supervisor sees to that.
	Store mcpbridge.Store
	// Roots are the first roots of the session, or nil.
	Roots *messages.SetRoots
	// Capabilities are declared to the server, in place of those of the [Bridge]. With nil, those of the Bridge
	// are. Read-only.
	Capabilities *mcp.ClientCapabilities
	// Introduction is what PerKey of the server gets, or nil. Read-only.
	Introduction *messages.Introduction
	// Attributes and Trace are those of the first operation that waits for the session. The
	// context of Dial has them as well, see [messages.AttributesOf]. They are empty for a dial
	// that no operation waits for.
	Attributes messages.Attributes
	Trace      messages.Trace
}

// Dialer opens sessions.
type Dialer interface {
	// Dial opens a session, or fails with an [*mcpbridge.Error]. It returns soon after ctx ends at the latest. A
	// dial that failed leaves nothing open but what [LeftBy] returns.
	Dial(ctx context.Context, req Request) (Conn, error)
}

// BridgeConfig is the configuration of a [Bridge].
type BridgeConfig struct {
	// Servers must be valid: see [mcpbridge.Server.Validate].
	Servers []mcpbridge.Server
	// Capabilities say what a server may request; nil means nothing.
	Capabilities *mcp.ClientCapabilities
	// Logger gets what the SDK logs about sessions; nil means none. What the SDK calls an error, such as a tool that it leaves
	// out of a list because it is malformed, is Warn. Secrets of the servers are blacked out.
	Logger *slog.Logger
}

// Bridge is the [Dialer] for a list of servers. Package mcpbridge/dialer makes it. Its sessions share one HTTP
// client per server.
type Bridge interface {
	Dialer
	// Set replaces the list of servers, which must be valid. A server that is the same as
	// before keeps its connections. Open sessions are not touched. Until Prune, a dial with
	// [Request].Only also finds the sessions of servers that were replaced or removed.
	Set(servers []mcpbridge.Server)
	// Prune closes the idle HTTP connections to servers that Set has replaced. Call it
	// when their sessions are closed.
	Prune()
	// Forget forgets what the bridge has found out about a server, such as the protocol
	// versions that it speaks. Open sessions are not touched. An unknown name is ignored.
	Forget(server string)
	// Strays returns how many responses were dropped because they belong to other
	// connections. Some servers send each response to all of their sessions.
	Strays() uint64
	// Skipped returns how many bytes of text, between messages, stdio servers have written to their stdout.
	Skipped() uint64
	// Close closes the idle HTTP connections, and waits for a cleanup that runs for sessions of a process that was
	// killed. Call it when all sessions are closed.
	Close()
}
