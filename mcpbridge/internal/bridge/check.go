package bridge

import (
	"context"
	"math/rand/v2"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/doubt"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// send sends a check. It returns nil if the session has no such check.
func (c *conn) send(ctx context.Context, do doubt.Do, which doubt.Check) *doubt.Answer {
	as := ""
	if do == doubt.Unknown {
		as = neverIssued(c.cs.ID())
	}
	switch list := listOf(c.info.Server.Capabilities); {
	case which == doubt.List && list != nil:
		return c.try(ctx, as, list)
	case which == doubt.Ping && !c.callbacks.uses.isModern: // that protocol has no ping
		return c.try(ctx, as, func(ctx context.Context, cs *mcp.ClientSession) error { return cs.Ping(ctx, nil) })
	}
	return nil
}

// listOf returns a function that gets one page of a list that the server has declared, or nil.
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

// try sends a check on the session. If as is not empty, the check carries that session id instead.
func (c *conn) try(ctx context.Context, as string, send func(context.Context, *mcp.ClientSession) error) *doubt.Answer {
	life := c.Cut
	if !wire.MayRefresh(ctx) {
		life = wire.WithoutRefresh(life)
	}
	inner, cancel := context.WithCancel(life)
	ex := c.newExchange(inner)
	ex.WithValues(ctx)
	ex.As = as
	defer context.AfterFunc(ctx, cancel)()
	ex.Over = inner.Done()
	defer c.link.Forget(ex)
	err := send(ex, c.cs)
	ex.Finish(err == nil, cancel)
	a := &doubt.Answer{Credentials: ex.Credentials()}
	if err != nil {
		a.Refusal = c.explain(ctx, ex, err)
	}
	return a
}

// neverIssued returns a random id with digits and letters where the given one has them.
func neverIssued(id string) string {
	isHex := strings.Trim(strings.ToLower(id), "0123456789abcdef-") == ""
	return strings.Map(func(r rune) rune {
		letters := 26
		if isHex {
			letters = 6
		}
		switch {
		case '0' <= r && r <= '9':
			return '0' + rune(rand.IntN(10))
		case 'a' <= r && r <= 'z':
			return 'a' + rune(rand.IntN(letters))
		case 'A' <= r && r <= 'Z':
			return 'A' + rune(rand.IntN(letters))
		}
		return r
	}, id)
}
