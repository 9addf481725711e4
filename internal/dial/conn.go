package dial

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Conn is one MCP session with its transport. Its methods may be called from any goroutine.
type Conn interface {
	// Do runs one operation. It returns when the operation has an answer or ctx ends. The error is
	// an [*mcpbridge.Error]. While the session is [mcpbridge.Unheard], operations are not sent, and fail at once, except for
	// [messages.Open]: it sends nothing, and waits until the session is heard again.
	Do(ctx context.Context, op messages.Operation) (messages.Result, error)
	// Hint reports whether the server annotated a tool as read-only or idempotent. That is
	// known after a [messages.ListTools] on this session. It does not block.
	Hint(tool string) (safe, known bool)
	// Info describes the session.
	Info() Info
	// Resume returns what is needed to resume the session, or nil if that is not possible.
	Resume() *mcpbridge.Resume
	// Close ends the session on the server and the transport, before ctx ends. If it has
	// failed, it may be called again. Operations that are still running fail.
	Close(ctx context.Context) error
	// Detach ends the transport only. Over HTTP the session stays open on the server. It
	// can be resumed, or ended by Close.
	Detach(ctx context.Context) error
}

// Info describes a session.
type Info struct {
	// Server is what the server said about itself. Read-only.
	Server *mcp.InitializeResult
	// AsSent is the result of initialize. A session that was resumed has none, and neither has one with a protocol after
	// 2025-11-25.
	messages.AsSent
	// Odd names the parts of what the server said about itself that are not what MCP allows, and what became of each, as in
	// [messages.Receipt]. A session that was resumed has none. Read-only.
	Odd []string
	// Stateless is true over HTTP without a session id: such a session cannot expire.
	Stateless bool
	// Attached is true if the session of [Request.Resume] was resumed.
	Attached bool
	// Declared identifies the capabilities that were declared when the session was opened, and the introduction: see
	// [mcpbridge.Resume].
	Declared string
}
