package bridge

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/doubt"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/messages"
)

// The methods of this file make conn the [transport.Watcher] of its transport.

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
			c.callbacks.owner.down(e)
		}
	}()
}

// Expired reports that the server does not know the session.
func (c *conn) Expired(e *mcpbridge.Error) { c.callbacks.owner.down(e) }

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
		c.callbacks.hear(&messages.ToolsChanged{})
	}
	if wanted.PromptsListChanged {
		c.callbacks.hear(&messages.PromptsChanged{})
	}
	if wanted.ResourcesListChanged {
		c.callbacks.hear(&messages.ResourcesChanged{})
	}
	for _, uri := range wanted.ResourceSubscriptions {
		c.callbacks.hear(&messages.ResourceUpdated{URI: uri})
	}
}
