package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// run runs an operation for a request. extra are the parameters for which its type has no fields.
func (c *client) run(r *mcpserver.Request, s *served, extra map[string]json.RawMessage, command func(messages.Header) messages.Operation) (messages.Result, error) {
	before, sent, level := s.turn()
	r.Pass()
	defer sent()
	h := s.header(patience)
	h.Extra, h.Quiet = extra, c.g.cfg.Quiet
	defer c.runs(h.ID, r)()
	ctx := context.WithValue(c.withProgress(r), caller.SentKey{}, sent)
	began := time.Now()
	select {
	case <-before:
		s.applyLevel(r.Context, h, level)
	case <-ctx.Done():
	}
	reply, err := c.g.do.Do(ctx, command(h))
	if err != nil && s.isStarting(ctx, err) {
		h.WaitUntil = began.Add(startPatience)
		reply, err = c.g.do.Do(ctx, command(h))
	}
	if err != nil {
		return nil, err
	}
	return reply.(messages.Result), nil
}

// runs notes that an operation runs for a request, until end is called.
func (c *client) runs(id string, r *mcpserver.Request) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.operations[id] = r
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.operations, id)
	}
}

// withProgress returns the context of a request, with which the client gets the progress if it wants that.
func (c *client) withProgress(r *mcpserver.Request) context.Context {
	token := r.Meta()["progressToken"]
	if token == nil {
		return r.Context
	}
	return supervisor.WithProgress(r.Context, func(p *messages.Progress) {
		c.Notify("notifications/progress", mcpserver.ObjectOf(p.Verbatim).With("progressToken", token), r.ID)
	})
}

// turn puts a request into the order of those of the client for the server. before is closed when the earlier ones are sent. The
// request calls sent when it is sent itself, or never will be. level is the level of log messages at its place in the order. The
// caller lets the next request pass after turn.
//
// A client that writes requests into the pipe of a server knows their order. So requests that come over stdio, or in one batch,
// are sent to a server in that order: each waits until the one before is sent. They use one session, so that none could be sent
// before. No other order is kept: not across servers, not of requests in several POSTs, and not of a request whose server is
// known only after a list has come. A server over HTTP may take them in another order.
func (s *served) turn() (before <-chan struct{}, sent func(), level string) {
	own := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.last = s.last, own
	s.c.mu.Lock()
	level = s.c.record.LogLevel
	s.c.mu.Unlock()
	return before, sync.OnceFunc(func() {
		select {
		case <-before:
			close(own)
		default: // the request was given up before its turn
			go func() {
				<-before
				close(own)
			}()
		}
	}), level
}

// isStarting reports whether a call has failed, and has not run, because the server takes long to start.
func (s *served) isStarting(ctx context.Context, err error) bool {
	failure, failed := errors.AsType[*messages.Failure](err)
	if !failed || failure.Code != messages.CodeUnavailable || failure.MayHaveRun {
		return false
	}
	status := s.check(ctx)
	return status != nil && status.State == messages.StateConnecting && status.Cause == ""
}

// requestOf returns the id of the request for which an operation runs, or nil.
func (c *client) requestOf(operation string) json.RawMessage {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.operations[operation]; r != nil {
		return r.ID
	}
	return nil
}

// metaOf returns the _meta of a request for a server. It has no progressToken, because the library adds one of its own. Its
// values keep their text: decoded, a number could become another one.
func metaOf(r *mcpserver.Request) (meta mcp.Meta) {
	for name, value := range r.Meta().Without("progressToken") {
		if meta == nil {
			meta = mcp.Meta{}
		}
		meta[name] = value
	}
	return meta
}

// callTool calls a tool. A failure that is not an error of the server becomes a result that tells the model why.
func (c *client) callTool(r *mcpserver.Request, params mcpserver.Object) (any, error) {
	if c.set != nil {
		return c.set.call(r, params)
	}
	public := params.Text("name")
	s, name, err := c.find(r, "tools/list", public)
	switch {
	case s == nil && err != nil:
		return failed("The tool " + fmt.Sprintf("%q", public) + " is not known, and some servers cannot be reached: " + oneLine(err)), nil
	case s == nil || !s.tools.Wants(name):
		return nil, mcpserver.Invalid(fmt.Sprintf("unknown tool %q", public))
	}
	call := &mcp.CallToolParams{Meta: metaOf(r), Name: name}
	if arguments := params["arguments"]; arguments != nil {
		call.Arguments = arguments
	}
	result, err := c.run(r, s, params.Without("name", "arguments", "_meta"), func(h messages.Header) messages.Operation {
		return &messages.CallTool{Header: h, Params: call}
	})
	if failure, is := errors.AsType[*messages.Failure](err); is {
		if failure.MayHaveRun {
			s.leaves(failure.Generation, name)
		}
		if saidBy(failure) == nil && !c.offer.isHere() {
			return failed(explain(failure, err)), nil
		}
	}
	if err != nil {
		return nil, err
	}
	receipt := result.GetReceipt()
	s.leaves(receipt.Generation, name)
	if receipt.Verbatim == nil {
		return result.(*messages.ToolResult).Result, nil
	}
	return s.tell(r, receipt.Verbatim), nil
}

// explain returns why a call failed, and how to log in if that is the reason.
func explain(failure *messages.Failure, err error) string {
	text := toolset.Explain(err)
	if failure.Code == messages.CodeUnauthorized && failure.Remedy != "" {
		text += " Tell the user: " + failure.Remedy
	}
	return text
}

// failed returns a result that tells a model what is wrong.
func failed(text string) any {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: text}}}
}

// verbatim returns a result as the server has sent it, if that is known.
func verbatim(result messages.Result, err error) (any, error) {
	switch {
	case err != nil:
		return nil, err
	case result.GetReceipt().Verbatim != nil:
		return result.GetReceipt().Verbatim, nil
	}
	if custom, is := result.(*messages.CustomResult); is {
		return custom.Result, nil
	}
	return struct{}{}, nil // to a request whose result says nothing
}

func (c *client) getPrompt(r *mcpserver.Request, params mcpserver.Object) (any, error) {
	public := params.Text("name")
	s, name, err := c.find(r, "prompts/list", public)
	switch {
	case s == nil && err != nil:
		return nil, err
	case s == nil:
		return nil, mcpserver.Invalid(fmt.Sprintf("unknown prompt %q", public))
	}
	get := &mcp.GetPromptParams{Meta: metaOf(r), Name: name}
	return verbatim(c.run(r, s, params.Without("name", "_meta"), func(h messages.Header) messages.Operation {
		return &messages.GetPrompt{Header: h, Params: get}
	}))
}

func (c *client) readResource(r *mcpserver.Request, params mcpserver.Object) (any, error) {
	uri := params.Text("uri")
	s, err := c.holder(r, uri)
	if err != nil {
		return nil, err
	}
	return verbatim(c.run(r, s, params.Without("uri", "_meta"), func(h messages.Header) messages.Operation {
		return &messages.ReadResource{Header: h, Params: &mcp.ReadResourceParams{Meta: metaOf(r), URI: uri}}
	}))
}

func (c *client) subscribe(r *mcpserver.Request, params mcpserver.Object) (any, error) {
	uri := params.Text("uri")
	s, err := c.holder(r, uri)
	if err != nil {
		return nil, err
	}
	before := c.watch(uri, s.name) // the first update may come before the answer
	defer c.keep()
	result, err := verbatim(c.run(r, s, nil, func(h messages.Header) messages.Operation {
		return &messages.Subscribe{Header: h, URI: uri}
	}))
	if err != nil && before == "" {
		c.watch(uri, "")
	}
	return result, err
}

func (c *client) unsubscribe(r *mcpserver.Request, params mcpserver.Object) (any, error) {
	uri := params.Text("uri")
	s := c.server(c.watch(uri, ""))
	defer c.keep()
	if s == nil || c.g.isWatched(uri, s.key()) {
		return struct{}{}, nil
	}
	return verbatim(c.run(r, s, nil, func(h messages.Header) messages.Operation {
		return &messages.Unsubscribe{Header: h, URI: uri}
	}))
}

// watch notes that the client has subscribed to a resource of a server, or with "" that it has not subscribed. It returns the
// server that was noted before.
func (c *client) watch(uri, server string) (before string) {
	c.note(func(k *record) bool {
		if before = k.Watched[uri]; before == server {
			return false
		}
		if server == "" {
			delete(k.Watched, uri)
			return true
		}
		if k.Watched == nil {
			k.Watched = map[string]string{}
		}
		k.Watched[uri] = server
		return true
	})
	return before
}

// watches reports whether the client has subscribed to a resource of a server.
func (c *client) watches(uri, server string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.record.Watched[uri] == server
}

// isWatched reports whether a client that uses a session has subscribed to a resource.
func (g *Gateway) isWatched(uri string, session messages.Key) bool {
	return slices.ContainsFunc(g.everybody(), func(c *client) bool {
		s := c.server(session.Server)
		return s != nil && s.key() == session && c.watches(uri, s.name)
	})
}

func (c *client) complete(r *mcpserver.Request, params mcpserver.Object) (any, error) {
	var complete mcp.CompleteParams
	said, _ := mcpserver.Encode(params.Without("_meta"))
	if json.Unmarshal(said, &complete) != nil || complete.Ref == nil {
		return nil, mcpserver.Invalid("ref: is missing or malformed")
	}
	var s *served
	var err error
	if complete.Ref.Type == "ref/prompt" {
		s, complete.Ref.Name, err = c.find(r, "prompts/list", complete.Ref.Name)
	} else {
		s, err = c.holder(r, complete.Ref.URI)
	}
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, mcpserver.Invalid("ref: is not known")
	}
	complete.Meta = metaOf(r)
	return verbatim(c.run(r, s, params.Without("ref", "argument", "context", "_meta"), func(h messages.Header) messages.Operation {
		return &messages.Complete{Header: h, Params: &complete}
	}))
}

// custom passes on a method that is not part of MCP. With several servers, it is refused: nobody knows for which it is.
func (c *client) custom(r *mcpserver.Request) (any, error) {
	if c.offer.prefixed {
		return nil, noMethod(r.Method)
	}
	result, err := verbatim(c.run(r, c.servers[0], nil, func(h messages.Header) messages.Operation {
		return &messages.Custom{Header: h, Name: r.Method, Params: r.Params}
	}))
	if failure, is := errors.AsType[*messages.Failure](err); is && failure.Code == messages.CodeInvalid && saidBy(failure) == nil {
		return nil, noMethod(r.Method)
	}
	return result, err
}
