package bridge

import (
	"context"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/bridge/wire"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// The methods of this file make a session the subject of its doubts.

func (c *conn) mayRefuse() bool { return c.link.MayRefuseSession() && !c.info.Stateless }

func (c *conn) mayBeAsked() bool {
	return c.IsOpen.Load() && c.Cut.Err() == nil && !c.at.transport().IsUnreachable()
}
func (c *conn) resultCount() uint64       { return c.results.Load() }
func (c *conn) untilCut() context.Context { return c.Cut }
func (c *conn) expire(e *mcpbridge.Error) { c.link.Expire(e) }

func (c *conn) isFresh() bool {
	session := c.link.Resumable()
	return session != nil && session.IsFresh()
}

func (c *conn) control(ctx context.Context, asked reply) verdict { return c.compare(ctx, c, asked) }

// becomesKnown asks a session again that has answered nothing since initialize, while its
// server may not know it yet. It reports whether the session was known at last, with the
// same credentials.
func (c *conn) becomesKnown(ctx context.Context, asked reply) bool {
	if !c.isFresh() {
		return false
	}
	for range wire.WhileFresh(ctx) {
		if again := c.question(ctx); again.refusal == nil {
			c.link.Succeeded()
			return reflect.DeepEqual(again.credentials, asked.credentials)
		}
	}
	return false
}

// question asks whether the server knows the session: by a ping and, since a server may
// answer that before initialize, by one page of a list that the server has declared.
func (c *conn) question(ctx context.Context) reply {
	ctx, cancel := context.WithTimeout(ctx, verdictTimeout)
	defer cancel()
	list := listOf(c.info.Server.Capabilities)
	if c.isModern() && list == nil { // which has no ping
		return reply{refusal: &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: "there is nothing to ask for"}}
	}
	if !c.isModern() {
		if r := c.try(ctx, func(ctx context.Context) error { return c.cs.Ping(ctx, nil) }); r.refusal != nil || list == nil {
			return r
		}
	}
	return c.try(ctx, func(ctx context.Context) error { return list(ctx, c.cs) })
}

// listOf returns what gets one page of a list that a server has declared, or nil.
func listOf(can *mcp.ServerCapabilities) func(context.Context, *mcp.ClientSession) error {
	switch {
	case can == nil:
	case can.Tools != nil:
		return func(ctx context.Context, cs *mcp.ClientSession) error {
			_, err := cs.ListTools(ctx, &mcp.ListToolsParams{})
			return err
		}
	case can.Resources != nil:
		return func(ctx context.Context, cs *mcp.ClientSession) error {
			_, err := cs.ListResources(ctx, &mcp.ListResourcesParams{})
			return err
		}
	case can.Prompts != nil:
		return func(ctx context.Context, cs *mcp.ClientSession) error {
			_, err := cs.ListPrompts(ctx, &mcp.ListPromptsParams{})
			return err
		}
	}
	return nil
}

// try makes one request of our own on the session.
func (c *conn) try(ctx context.Context, request func(context.Context) error) reply {
	life := c.Cut
	if !wire.MayRefresh(ctx) {
		life = wire.WithoutRefresh(life)
	}
	inner, cancel := context.WithCancel(life)
	ex := c.newExchange(inner)
	ex.WithValues(ctx)
	defer context.AfterFunc(ctx, cancel)()
	ex.Over = inner.Done()
	defer c.link.Forget(ex)
	err := request(ex)
	ex.Finish(err == nil, cancel)
	r := reply{credentials: ex.Credentials()}
	if err != nil {
		r.refusal = c.explain(ctx, ex, err)
	}
	return r
}
