package supervisor

import (
	"context"

	"github.com/mcpactor/mcpactor/messages"
)

// Pin keeps the session of a server and a scope from being evicted, and from being closed
// when it is idle, until Unpin or until it is closed. It opens nothing. See [messages.Pin].
func (c *Client) Pin(ctx context.Context, server, scope string) (*messages.Pinned, error) {
	return ask[*messages.Pinned](ctx, c, &messages.Pin{Key: messages.Key{Server: server, Scope: scope}})
}

// Unpin ends a [Client.Pin].
func (c *Client) Unpin(ctx context.Context, server, scope string) (*messages.Pinned, error) {
	return ask[*messages.Pinned](ctx, c, &messages.Pin{Key: messages.Key{Server: server, Scope: scope}, Release: true})
}
