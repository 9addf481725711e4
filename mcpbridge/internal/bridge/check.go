package bridge

import (
	"context"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// runChecks runs checks at the same time, until isEnough reports that the answers are enough, or limit is over. Once it
// reports half, the others have only halfTimeout.
func (c *conn) runChecks(ctx context.Context, limit time.Duration, isEnough func(answers) (enough, half bool), checks ...check) (got answers) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	type answered struct {
		check
		*answer
	}
	came := make(chan answered, len(checks))
	open := 0
	for _, which := range checks {
		if send := c.checkFunc(which); send != nil {
			open++
			go func() { came <- answered{which, c.try(ctx, "", send)} }()
		}
	}
	for ; open > 0; open-- {
		select {
		case a := <-came:
			got[a.check] = a.answer
		case <-ctx.Done():
			return got
		}
		enough, half := isEnough(got)
		if enough {
			return got
		}
		if half {
			defer time.AfterFunc(halfTimeout, cancel).Stop()
		}
	}
	return got
}

// untilAll waits for all answers.
func untilAll(answers) (enough, half bool) { return false, false }

// checkFunc returns the function that sends a check, or nil if the session has no such check.
func (c *conn) checkFunc(which check) func(context.Context, *mcp.ClientSession) error {
	if which == checkList {
		return listOf(c.info.Server.Capabilities)
	}
	if c.isModern() { // that protocol has no ping
		return nil
	}
	return func(ctx context.Context, cs *mcp.ClientSession) error { return cs.Ping(ctx, nil) }
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
func (c *conn) try(ctx context.Context, as string, send func(context.Context, *mcp.ClientSession) error) *answer {
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
	a := &answer{credentials: ex.Credentials()}
	if err != nil {
		a.refusal = c.explain(ctx, ex, err)
	}
	return a
}
