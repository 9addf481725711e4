package bridge

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/rounds"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// askQuestions asks the questions of a round, and returns the answers. The end of the connection does not end them.
func (c *conn) askQuestions(ctx context.Context, op *rounds.Questions) (messages.Result, error) {
	ex := wire.NewExchange(ctx, &c.callbacks, false)
	ex.Operation, ex.Over, ex.Outlives = op.Call, ctx.Done(), true
	ex.WithValues(ctx)
	questions := make(mcp.InputRequestMap, len(op.Asked.Questions))
	for key, one := range op.Asked.Questions {
		questions[key] = one.Params
	}
	answers, err := fulfil(ex, questions, func(ctx context.Context, key string) (mcp.Result, error) {
		one := op.Asked.Questions[key]
		method, req := requestOf(c.cs, one.Params)
		if raw := c.callbacks.rawOf(one.Raw); raw.Verbatim != nil && method != rpc.MethodListRoots {
			return passOn(ctx, req.GetParams(), raw)
		}
		return c.client.receive(ctx, method, req)
	})
	if err != nil {
		return nil, err
	}
	all := make(map[string]json.RawMessage, len(answers))
	for key, answer := range answers {
		if all[key], err = json.Marshal(answer); err != nil {
			return nil, &mcpbridge.Error{Class: mcpbridge.Refused, Sent: true, Detail: "the answer cannot be encoded", Err: err}
		}
	}
	return &rounds.Answers{All: all}, nil
}
