package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/internal/rounds"
	"github.com/mcpactor/mcpactor/internal/tasks"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// Do runs one operation. It returns when the operation has an answer or ctx ends, whatever the SDK
// waits for: the context of the SDK ends with ctx and with the session.
func (c *conn) Do(ctx context.Context, op messages.Operation) (result messages.Result, err error) {
	defer wire.Recover(&err)
	if asks, is := op.(*rounds.Questions); is {
		return c.askQuestions(ctx, asks)
	}
	sent := op
	if next, is := op.(*rounds.Next); is {
		op, sent = next.Operation, next.Sent()
	}
	_, sendsNothing := op.(*messages.Open)
	switch e := c.doubts.admit(ctx, sendsNothing); {
	case e != nil:
		return nil, e
	case sendsNothing:
		return &messages.SessionInfo{Receipt: messages.Receipt{Odd: c.info.Odd}, Server: c.info.Server, Stateless: c.info.Stateless}, nil
	}
	begun := c.begun.Add(1)
	inner, cancel := context.WithCancel(c.Cut)
	ex := c.newExchange(inner)
	ex.WithValues(ctx)
	ex.Operation, ex.Cancel = sent, cancel
	stop := afterFunc(ctx, cancel)
	defer func() { stop(); ex.Finish(err == nil, cancel) }()
	if err := ctx.Err(); err != nil { // AfterFunc runs concurrently, and may come too late
		return nil, c.explain(ctx, ex, err)
	}
	ex.Over = inner.Done()
	defer c.link.Forget(ex)
	defer c.Questions.Forget(ex)
	if (op.Head().Subscriber != nil || op.Head().Quiet > 0) && c.callbacks.owner.listens() {
		ex.ProgressToken = c.Progress.Watch(func(p *mcp.ProgressNotificationParams, raw json.RawMessage) {
			note := &messages.Progress{ID: op.RequestID(), Progress: p.Progress, Total: p.Total, Message: p.Message, Meta: p.Meta}
			if c.at.Verbatim {
				note.Verbatim = bytes.Clone(raw)
			}
			c.callbacks.owner.hear(note, op)
		})
		defer c.Progress.Unwatch(ex.ProgressToken)
	}
	changes := c.callbacks.hints.changed()
	result, err = c.run(ex, sent)
	c.callbacks.logs.await(ctx)
	if became, is := errors.AsType[*becameTask](err); is {
		result, err = became.Task, nil
	}
	if asks, is := errors.AsType[*asksForInput](err); is {
		result, err = asks.Asked, nil
	}
	if err != nil {
		return nil, c.doubts.settle(ctx, op, ex, c.explain(ctx, ex, err))
	}
	for last := c.result.Load(); last < begun && !c.result.CompareAndSwap(last, begun); {
		last = c.result.Load()
	}
	c.link.Succeeded()
	if op.Head().Verbatim && !isUnfinished(result) {
		result.GetReceipt().Verbatim = verbatim(op, ex.Kept())
	}
	result.GetReceipt().Odd = ex.Odd()
	if list, ok := result.(*messages.ToolList); ok {
		c.callbacks.hints.set(list.Result.Tools, changes)
	}
	return result, nil
}

// isUnfinished reports whether a result is not that of its operation yet.
func isUnfinished(result messages.Result) bool {
	switch result.(type) {
	case *tasks.Task, *rounds.Asked:
		return true
	}
	return false
}

// afterFunc is [context.AfterFunc]. A context that can do it by itself spares that function a
// context of its own.
func afterFunc(ctx context.Context, f func()) (stop func() bool) {
	if own, ok := ctx.(interface {
		AfterFunc(f func()) (stop func() bool)
	}); ok {
		return own.AfterFunc(f)
	}
	return context.AfterFunc(ctx, f)
}

// run runs one operation.
func (c *conn) run(ctx context.Context, op messages.Operation) (messages.Result, error) {
	uses := c.callbacks.uses
	switch op := op.(type) {
	case tasks.Operation:
		return taskCaller{c.cs, c.client.receive, c.link, uses.followsTasks}.run(ctx, wire.ExchangeOf(ctx), op)
	case *messages.Custom:
		return c.callCustom(ctx, op)
	case *messages.SetRoots:
		return &messages.Ack{}, c.setRoots(ctx, op)
	case *messages.Ping:
		if uses.isModern { // which has no ping, and answers server/discover instead
			_, err := mcp.CallCustomMethod[*mcp.DiscoverParams, *mcp.DiscoverResult](ctx, c.cs, rpc.MethodDiscover, &mcp.DiscoverParams{})
			return &messages.Ack{}, err
		}
	case *messages.SetLogLevel:
		if uses.isModern { // each request names the level
			c.callbacks.level.Store(op)
			return &messages.Ack{}, nil
		}
	}
	return caller{c.cs, wire.MaxResult(&c.at.Server), uses.isModern, c}.run(ctx, op)
}

// setRoots replaces the roots of the session.
func (c *conn) setRoots(ctx context.Context, op *messages.SetRoots) error {
	roots := c.client.capabilities.RootsV2
	if roots == nil {
		return &mcpbridge.Error{Class: mcpbridge.Invalid, Detail: "the declared capabilities have no roots"}
	}
	c.callbacks.roots.Store(op)
	if !roots.ListChanged || c.callbacks.uses.isModern {
		return nil
	}
	_, err := c.client.send(ctx, rpc.MethodRootsChanged, &mcp.ClientRequest[*mcp.RootsListChangedParams]{Session: c.cs, Params: &mcp.RootsListChangedParams{}})
	return err
}
