package bridge

import (
	"context"
	"errors"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/results"
	"github.com/mcpactor/mcpactor/internal/tasks"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// Until the SDK has tasks (SEP-2663), their requests are custom methods.

// taskCaller runs operations on tasks.
type taskCaller struct {
	cs      *mcp.ClientSession
	receive mcp.MethodHandler // handles what a task asks for
	link    transport.Conn
	follows bool // the server may turn calls into tasks
}

// run runs an operation on a task.
func (c taskCaller) run(ctx context.Context, ex *wire.Exchange, op tasks.Operation) (messages.Result, error) {
	if !c.follows {
		return nil, &mcpbridge.Error{Class: mcpbridge.Lost, Sent: true, Detail: "the call has become a task, and this session has no tasks"}
	}
	params := map[string]any{"taskId": op.Task()}
	if update, is := op.(*tasks.Update); is {
		of := wire.NewExchange(ctx, ex.Owner, false)
		of.Operation, of.Over = update.Call, ex.Over
		answers, err := fulfil(wire.InExchange(ctx, of), update.Inputs, func(ctx context.Context, key string) (mcp.Result, error) {
			method, req := requestOf(c.cs, update.Inputs[key])
			return c.receive(ctx, method, req)
		})
		if err != nil {
			return nil, err
		}
		params["inputResponses"] = answers
	}
	custom, err := newCustomParams(params)
	if err != nil {
		return nil, err
	}
	result, err := mcp.CallCustomMethod[*customParams, *customResult](ctx, c.cs, op.Method(), custom)
	if _, asks := op.(*tasks.Get); err != nil || !asks {
		return &messages.Ack{}, err
	}
	task, err := tasks.Decode(result.raw, false)
	if err != nil {
		return nil, wrongTask(err)
	}
	if task.ID != op.Task() {
		return nil, wrongTask(errors.New("the server has answered with another one"))
	}
	switch task.Status {
	case tasks.Completed:
		return c.completed(ex, task, op.Head().Verbatim)
	case tasks.Failed:
		return nil, c.failed(task.Error)
	case tasks.Cancelled:
		return nil, &mcpbridge.Error{
			Class: mcpbridge.ServerError, Sent: true, Begun: true, Own: true, Status: http.StatusOK, Err: tasks.ErrCancelled,
			Detail: "the server has cancelled the task: " + redact.Clean(task.Message, c.link.Secrets()...), Shared: "the server has cancelled a task",
		}
	}
	return task, nil
}

// completed returns the result of the call that has become a task.
func (c taskCaller) completed(ex *wire.Exchange, task *tasks.Task, verbatim bool) (messages.Result, error) {
	if err := results.Check(rpc.MethodCallTool, task.Result, true); err != nil {
		return nil, wrongTask(err)
	}
	result, err := decoded(ex, rpc.MethodCallTool, task.Result, verbatim)
	if err != nil {
		return nil, wrongTask(err)
	}
	return &messages.ToolResult{Result: result.(*mcp.CallToolResult)}, nil
}

// failed returns what the error of a call means that has become a task. Its request was answered long ago.
func (c taskCaller) failed(said *jsonrpc.Error) error {
	e := &mcpbridge.Error{
		Class: mcpbridge.ServerError, Sent: true, Begun: true, Own: true, Status: http.StatusOK, Code: said.Code,
		Detail: redact.Clean(said.Message, c.link.Secrets()...), Shared: "the task has failed", Err: said,
	}
	if said.Code == rpc.CodeInvalidParams || said.Code == rpc.CodeMethodNotFound {
		e.Class = mcpbridge.Invalid
	}
	return e
}
