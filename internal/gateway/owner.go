package gateway

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
)

// owner is the actor to which the scope of a client belongs. It asks the client what servers ask.
type owner struct{ c *client }

// Receive takes the questions of servers.
func (o *owner) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *messages.Withdrawn:
		o.c.mu.Lock()
		withdraw := o.c.pending[m.Question]
		o.c.mu.Unlock()
		if withdraw != nil {
			withdraw()
		}
	case messages.Request:
		origin, sender, root := m.GetOrigin(), c.Sender(), c.ActorSystem().Root
		ctx, withdraw := context.WithDeadline(o.c.ctx, origin.Deadline)
		o.c.mu.Lock()
		o.c.pending[origin.Question] = withdraw
		o.c.mu.Unlock()
		go func() {
			defer withdraw()
			root.Send(sender, o.c.answer(ctx, m))
			o.c.mu.Lock()
			delete(o.c.pending, origin.Question)
			o.c.mu.Unlock()
		}()
	}
}

// answer passes a question on to the client, and returns its answer.
func (c *client) answer(ctx context.Context, m messages.Request) messages.Answer {
	of := c.requestOf(m.GetOrigin().Operation.ID)
	var answer messages.AsSent
	var err error
	switch m := m.(type) {
	case *messages.Elicit:
		if answer.Verbatim, err = c.ask(ctx, "elicitation/create", m.Verbatim, of); err == nil {
			return &messages.Elicited{AsSent: answer}
		}
	case *messages.Sample:
		if answer.Verbatim, err = c.ask(ctx, "sampling/createMessage", m.Verbatim, of); err == nil {
			return &messages.Sampled{AsSent: answer}
		}
	case *messages.ListRoots:
		result := new(mcp.ListRootsResult)
		if answer.Verbatim, err = c.ask(ctx, "roots/list", nil, of); err == nil {
			if err = json.Unmarshal(answer.Verbatim, result); err == nil {
				return &messages.Roots{Roots: result.Roots}
			}
		}
	default:
		err = errors.New("the question is not known")
	}
	return &messages.Refusal{Reason: err.Error()}
}

// ask asks the client, as soon as it may be asked: a server that starts for initialize may ask before its response.
func (c *client) ask(ctx context.Context, method string, params, of json.RawMessage) (json.RawMessage, error) {
	select {
	case <-c.mayAsk:
		return c.Ask(ctx, method, params, of)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
