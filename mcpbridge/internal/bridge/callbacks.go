package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// callbacks answers the callbacks of the SDK for one session: the notifications and questions of its server. It also gets the
// notifications that the SDK drops.
type callbacks struct {
	session *transport.Session
	server  *mcpbridge.Server
	owner   owner
	hints   toolHints
	dialing atomic.Pointer[handshake] // nil once the session is open
	uses    protocol
	logs    logOrder

	roots atomic.Pointer[messages.SetRoots]    // or nil: then the server has to ask for them
	level atomic.Pointer[messages.SetLogLevel] // that requests name, for protocol 2026-07-28; or nil
}

// protocol is what follows from the protocol of a session. Until the session is open, nothing does.
type protocol struct {
	version       string // of the protocol, or empty
	isModern      bool   // it is later than 2025-11-25
	followsTasks  bool   // the server may turn calls into tasks
	carriesParams bool   // the connection adds the parameters of an exchange to its request
}

// hear passes a notification to the owner.
func (c *callbacks) hear(n messages.Notification) {
	if _, changed := n.(*messages.ToolsChanged); changed {
		c.hints.clear()
	}
	c.owner.hear(n, nil)
}

// heardOnWire handles a notification as soon as it arrives. When the SDK handles it, a call may already have been lost
// and replayed by the old hints. Notifications that are not part of MCP are passed on here, if the configuration has
// them: the SDK drops them.
func (c *callbacks) heardOnWire(method string, params json.RawMessage) {
	switch method {
	case rpc.MethodToolsChanged:
		c.hints.clear()
	case rpc.MethodLog:
		c.logs.arrived()
	}
	beyond := c.server.CustomNotifications
	if slices.Contains(beyond, method) || slices.Contains(beyond, rpc.AnyNotification) && !rpc.IsNotificationOfMCP(method) {
		c.hear(&messages.CustomNotification{Method: method, Params: bytes.Clone(params)})
	}
}

// ask passes a question to the owner, and waits for the answer, which may be a [*messages.Refusal].
func (c *callbacks) ask(ctx context.Context, req messages.Request) messages.Answer {
	ex := wire.ExchangeOf(ctx)
	if ex.IsOver() {
		return &messages.Refusal{Reason: "its operation is over"}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !ex.Outlives {
		defer context.AfterFunc(c.session.Cut, cancel)()
	}
	return c.owner.ask(ctx, req, ex.Operation)
}

// origin returns the exchange that a question of the server belongs to, or nil.
func (c *callbacks) origin(params mcp.Params) *wire.Exchange {
	return c.session.Questions.Origin(params, c)
}

// logOf returns the operation that a log message belongs to, or nothing.
func (c *callbacks) logOf(params *mcp.LoggingMessageParams) messages.OperationRef {
	return c.session.Questions.LogOf(params)
}

// asSent returns the parameters of a question or a notification as the server has sent them, or nothing.
func (c *callbacks) asSent(params mcp.Params) (raw messages.AsSent) {
	if c.server.Verbatim {
		raw.Verbatim = c.session.Questions.Kept(params)
	}
	return raw
}

// rawOf returns parameters as the server has sent them, or nothing if the configuration does not want them.
func (c *callbacks) rawOf(params json.RawMessage) (raw messages.AsSent) {
	if c.server.Verbatim {
		raw.Verbatim = params
	}
	return raw
}

// logLevel returns the log level that requests name, or nothing.
func (c *callbacks) logLevel() string {
	if op := c.level.Load(); op != nil {
		return op.Level
	}
	return ""
}
