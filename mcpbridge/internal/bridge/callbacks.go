package bridge

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/doubt"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// The methods of this file make conn the [handler] of the SDK's callbacks, and the watcher of its transport.

// hear passes a notification to the owner.
func (c *conn) hear(n messages.Notification) {
	if _, changed := n.(*messages.ToolsChanged); changed {
		c.clearHints()
	}
	if o := c.owner.Load(); o != nil && o.heard != nil {
		o.heard(n, nil)
	}
}

// ask passes a question to the owner, and waits for the answer.
func (c *conn) ask(ctx context.Context, req messages.Request) messages.Answer {
	o := c.owner.Load()
	if o == nil || o.ask == nil {
		return nobody{}.ask(ctx, req)
	}
	ex := wire.ExchangeOf(ctx)
	if ex.IsOver() {
		return &messages.Refusal{Reason: "its operation is over"}
	}
	if c.asked.Add(1) > maxAsked {
		c.asked.Add(-1)
		return &messages.Refusal{Reason: fmt.Sprintf("%d requests are waiting for an answer already", maxAsked)}
	}
	defer c.asked.Add(-1)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.Cut, cancel)()
	return o.ask(ctx, req, ex.Operation)
}

// origin returns the exchange that a question of the server belongs to, or nil.
func (c *conn) origin(params mcp.Params) *wire.Exchange { return c.Questions.Origin(params, c) }

// logOf returns the operation that a log message belongs to, or nothing.
func (c *conn) logOf(params *mcp.LoggingMessageParams) messages.OperationRef {
	return c.Questions.LogOf(params)
}

// asSent returns the parameters of a question or a notification as the server has sent them, or nothing.
func (c *conn) asSent(params mcp.Params) (raw messages.AsSent) {
	if c.at.Verbatim {
		raw.Verbatim = c.Questions.Kept(params)
	}
	return raw
}

// currentRoots returns the roots of the session, or nil.
func (c *conn) currentRoots() *messages.SetRoots { return c.roots.Load() }

// introduction returns the further parameters of initialize, and where to keep the result as it came, or nil.
func (c *conn) introduction() (further map[string]json.RawMessage, keep *json.RawMessage) {
	if c.at.Verbatim {
		keep = &c.info.Verbatim
	}
	return c.at.Initialize, keep
}

// introduced notes what is odd about the result of initialize.
func (c *conn) introduced(odd []string) { c.info.Odd = odd }

// logLevel returns the log level that requests name, or nothing.
func (c *conn) logLevel() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level
}

// carriesParams reports whether the connection adds the parameters of an exchange to its request. With protocols after
// 2025-11-25 it does not: the SDK needs the parameters, because it sends some of them as headers.
func (c *conn) carriesParams() bool {
	return c.IsOpen.Load() && c.link.CarriesParams() && !c.isModern()
}

// Broke reports that an open connection has ended by itself.
func (c *conn) Broke(err error) {
	if !c.IsOpen.Load() { // the dial returns the error
		return
	}
	go func() { // describeEnd may wait for the end of a process
		e := &mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Detail: redact.Describe(err, c.secrets()...)}
		c.describeEnd(e)
		e.Quote = "" // only callers may see it
		if !c.isClosing.Load() {
			c.reportDown(e)
		}
	}()
}

// Expired reports that the server does not know the session.
func (c *conn) Expired(e *mcpbridge.Error) { c.reportDown(e) }

// Doubt begins an inquiry, and does not wait for it. During the handshake there is nothing to ask yet: if the server does not know
// the session, the first operation is refused, too.
func (c *conn) Doubt(method string, refusal *mcpbridge.Error) {
	if !c.IsOpen.Load() {
		return
	}
	c.doubts.inquire(doubt.KindOfOther(method, refusal))
}

// Announced returns the notifications that the server has said it may send.
func (c *conn) Announced() *mcp.NotificationSubscriptions {
	if !c.IsOpen.Load() {
		return nil
	}
	can := c.info.Server.Capabilities
	if can == nil {
		return nil
	}
	return &mcp.NotificationSubscriptions{
		ToolsListChanged:     can.Tools != nil && can.Tools.ListChanged,
		PromptsListChanged:   can.Prompts != nil && can.Prompts.ListChanged,
		ResourcesListChanged: can.Resources != nil && can.Resources.ListChanged,
	}
}

// Missed passes on the notifications that may have been lost, as if they had arrived.
func (c *conn) Missed(wanted *mcp.NotificationSubscriptions) {
	if wanted == nil {
		return
	}
	if wanted.ToolsListChanged {
		c.hear(&messages.ToolsChanged{})
	}
	if wanted.PromptsListChanged {
		c.hear(&messages.PromptsChanged{})
	}
	if wanted.ResourcesListChanged {
		c.hear(&messages.ResourcesChanged{})
	}
	for _, uri := range wanted.ResourceSubscriptions {
		c.hear(&messages.ResourceUpdated{URI: uri})
	}
}
