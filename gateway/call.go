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
	"github.com/mcpactor/mcpactor/gateway/internal/publicid"
	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// run runs an operation for a request. extra are the parameters for which its type has no fields.
func (c *client) run(r *mcpserver.Request, s *served, extra map[string]json.RawMessage, command func(messages.Header) messages.Operation) (messages.Result, error) {
	if said := s.introduced(); extra["inputResponses"] != nil && len(said) > 0 && !isStateless(said) {
		return nil, mcpserver.Invalid("inputResponses: requestState is missing: send that of the result that asked")
	}
	before, sent, level := s.turn()
	if c.isStateless {
		level = s.lowerLevel(r.Meta().Text(mcp.MetaKeyLogLevel))
	}
	r.Pass()
	defer sent()
	h := s.header(patience)
	h.Extra, h.Quiet, h.Trace, h.AsIs = extra, c.g.cfg.Quiet, traceOf(r), c.isStateless
	defer c.runs(h.ID, r, s)()
	ctx := context.WithValue(c.withProgress(r), caller.SentKey{}, sent)
	began := time.Now()
	select {
	case <-before:
		s.applyLevel(r.Context, h, level)
	case <-ctx.Done():
	}
	op := command(h)
	isMint := mints(s.of.Handles, op)
	if isMint {
		op.Head().WaitUntil = began.Add(startPatience)
		sent() // or else a request that releases a handle could wait for this one, and this one for the handle
	}
	reply, err := c.g.do.Do(ctx, op)
	if err != nil && !isMint && s.isStarting(ctx, err) {
		h.WaitUntil = began.Add(startPatience)
		reply, err = c.g.do.Do(ctx, command(h))
	}
	if c.isStateless && r.Meta()[mcp.MetaKeyLogLevel] != nil {
		s.flushLogs(ctx)
	}
	if err != nil {
		return nil, ofRound(r, err)
	}
	return reply.(messages.Result), nil
}

// logTime bounds how long the result of a request that wants log messages waits for the last of them.
const logTime = time.Second

// flushLogs waits until the client has the log messages that came before a result: they come as events.
func (s *served) flushLogs(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, logTime)
	defer cancel()
	s.check(ctx) // the registry answers it after the events that it has got before
	s.c.g.backend.Flush(ctx)
}

// operation is an operation that runs for a request.
type operation struct {
	r      *mcpserver.Request
	of     *served // nil if that is left to a toolset
	serial uint64  // counts those of a client
}

// runs notes that an operation runs for a request, until end is called.
func (c *client) runs(id string, r *mcpserver.Request, of *served) (end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.operations[id] = operation{r, of, c.serial.Load()}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.operations, id)
	}
}

// withProgress returns the context of a request, with which the client gets the progress if it wants that.
func (c *client) withProgress(r *mcpserver.Request) context.Context {
	if r.Meta()["progressToken"] == nil {
		return r.Context
	}
	return supervisor.WithProgress(r.Context, func(p *messages.Progress) {
		now := r.Current()
		if now == nil {
			return
		}
		if token := now.Meta()["progressToken"]; token != nil {
			said := c.publicTasks(c.server(p.Key.Server), p.Verbatim)
			c.Notify("notifications/progress", mcpserver.ObjectOf(said).With("progressToken", token), r)
		}
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

// requestOf returns the request for which an operation runs, or nil.
func (c *client) requestOf(operation string) *mcpserver.Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.operations[operation].r
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

// traceOf returns the trace of the client that a request belongs to, or an empty one.
func traceOf(r *mcpserver.Request) messages.Trace {
	trace := messages.Trace{Parent: r.Meta().Text("traceparent"), State: r.Meta().Text("tracestate")}
	if trace.Validate() != nil {
		return messages.Trace{}
	}
	return trace
}

// callTool calls a tool. A failure that is not an error of the server becomes a result that tells the model why.
func (c *client) callTool(r *mcpserver.Request, params mcpserver.Object) (any, error) {
	if c.set != nil {
		return c.set.call(r, params)
	}
	public := params.Text("name")
	if own := c.own[public]; own != nil && c.view.Answers(public) {
		return own(r, params)
	}
	s, name, err := c.serverOf(r, "tools/list", public)
	isOffered := false
	if s != nil {
		isOffered, err = s.offers(r, name)
	}
	switch {
	case !isOffered && err != nil:
		return failed("The tool " + fmt.Sprintf("%q", public) + " is not known, and some servers cannot be reached: " + oneLine(err)), nil
	case !isOffered && c.view.Shown(public) != nil:
		return failed(leftOut(public)), nil
	case !isOffered:
		return nil, mcpserver.Invalid(fmt.Sprintf("unknown tool %q", public))
	}
	if c.isStateless { // it may not have waited for what is known of the tool, as initialize does
		if err := s.checkHeaders(r.Context, name, params["arguments"], r.Headers); err != nil {
			return nil, err
		}
	}
	var refuses func() string
	if c.g.cfg.Stability == toolset.Freeze || c.g.cfg.Pins != nil || !s.wants(name, false) {
		refuses = func() string { return s.refuses(r, name, params) }
	}
	return c.callOn(r, s, name, params, refuses)
}

// refuses returns why a call is not sent, or "": the tool does not pass the filters, or the arguments do not fit its definition.
func (s *served) refuses(r *mcpserver.Request, name string, params mcpserver.Object) string {
	if s.c.g.cfg.Pins != nil {
		if err := s.unpinned(r, "tools/list", name); err != nil {
			return "The tool did not run: " + oneLine(err)
		}
	} else {
		s.confirm(r, "tools/list") //nolint:errcheck // then the last list counts, or the call says why the server is down
	}
	if s.c.g.cfg.Stability == toolset.Freeze {
		s.lists["tools/list"].settle(r)
	}
	public, now := params.Text("name"), s.tool(name)
	if now.ID == "" && !s.wants(name, false) {
		return leftOut(public)
	}
	if schema, err := s.c.view.Misfit(now, params["arguments"]); err != nil {
		return fmt.Sprintf("The tool did not run. The definition of the tool %q has changed: %v. Its input schema is now: %s", public, err, schema)
	}
	return ""
}

func leftOut(public string) string {
	return fmt.Sprintf("The tool %q did not run: its server no longer has it, or a filter leaves it out.", public)
}

// callOn calls a tool of a server that has a name there. If refuses is not nil, it is asked before the call is sent, and says why it is not. The
// call is sent on the session for which it was asked, and on no other one.
func (c *client) callOn(r *mcpserver.Request, s *served, name string, params mcpserver.Object, refuses func() string) (any, error) {
	call := &mcp.CallToolParams{Meta: metaOf(r), Name: name}
	if arguments := params["arguments"]; arguments != nil {
		call.Arguments = arguments
	}
	command := func(h messages.Header) messages.Operation {
		if refuses != nil {
			h.Replay = messages.ReplayNever
		}
		return &messages.CallTool{Header: h, Params: call}
	}
	result, text, err := unless(refuses, func() (messages.Result, error) {
		s.noteCall(name, params.Text("name"))
		return c.run(r, s, params.Without("name", "arguments", "_meta"), command)
	})
	if text != "" {
		return failed(text), nil
	}
	if failure, is := errors.AsType[*messages.Failure](err); is {
		if failure.MayHaveRun {
			s.leaves(failure.Generation, name)
		}
		if saidBy(failure) == nil && !c.offer.isHere() {
			s.explained(failure)
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
	return s.tell(r, c.publicTasks(s, receipt.Verbatim)), nil
}

// unless runs an operation that is not replayed, unless refuses says why not. If its session is gone, it asks and runs once more. If refuses is
// nil, the operation just runs.
func unless(refuses func() string, run func() (messages.Result, error)) (result messages.Result, refused string, err error) {
	for again := refuses != nil; ; again = false {
		if refuses != nil {
			if refused = refuses(); refused != "" {
				return nil, refused, nil
			}
		}
		if result, err = run(); !again || !hasNewSession(err) {
			return result, "", err
		}
	}
}

// noteCall notes that a tool is called: a client that finds tools is shown it from now on, and later clients as well.
func (s *served) noteCall(name, public string) {
	if s.c.own != nil && s.lists["tools/list"].item(name).id != "" {
		briefly(func() { s.endpoint.used.note(name) })
		s.c.view.Note(public)
	}
}

// hasNewSession reports whether a call has failed, and has not run, because its session is gone.
func hasNewSession(err error) bool {
	failure, is := errors.AsType[*messages.Failure](err)
	return is && !failure.MayHaveRun && (failure.Code == messages.CodeExpired || failure.Code == messages.CodeLost)
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
	s, name, err := c.serverOf(r, "prompts/list", public)
	switch {
	case s == nil && err != nil:
		return nil, err
	case s == nil:
		return nil, mcpserver.Invalid(fmt.Sprintf("unknown prompt %q", public))
	}
	get := &mcp.GetPromptParams{Meta: metaOf(r), Name: name}
	var refuses func() string
	if c.g.cfg.Pins != nil {
		refuses = func() (text string) {
			if err := s.unpinned(r, "prompts/list", name); err != nil {
				text = oneLine(err)
			}
			return text
		}
	}
	result, text, err := unless(refuses, func() (messages.Result, error) {
		return c.run(r, s, params.Without("name", "_meta"), func(h messages.Header) messages.Operation {
			if refuses != nil {
				h.Replay = messages.ReplayNever
			}
			return &messages.GetPrompt{Header: h, Params: get}
		})
	})
	if text != "" {
		return nil, mcpserver.Invalid(text)
	}
	return verbatim(result, err)
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
		s, complete.Ref.Name, err = c.serverOf(r, "prompts/list", complete.Ref.Name)
	} else {
		s, err = c.holder(r, complete.Ref.URI)
	}
	switch {
	case err != nil:
		return nil, err
	case s == nil:
		return nil, mcpserver.Invalid("ref: is not known")
	case c.g.cfg.Pins != nil && complete.Ref.Type == "ref/prompt":
		if err := s.unpinned(r, "prompts/list", complete.Ref.Name); err != nil {
			return nil, mcpserver.Invalid("ref: " + oneLine(err))
		}
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
	result, err := verbatim(c.run(r, c.servers()[0], nil, func(h messages.Header) messages.Operation {
		return &messages.Custom{Header: h, Name: r.Method, Params: r.Params}
	}))
	if failure, is := errors.AsType[*messages.Failure](err); is && failure.Code == messages.CodeInvalid && saidBy(failure) == nil {
		return nil, noMethod(r.Method)
	}
	return result, err
}

// errNoTask is the error for an id that no server has.
var errNoTask = mcpserver.Invalid("unknown task")

// task passes on a request for a task to the server that its id names, or for the list of tasks to all of them.
func (c *client) task(r *mcpserver.Request) (any, error) {
	if c.offer.isHere() {
		return c.custom(r)
	}
	isNew := r.IsStateless()
	if !slices.ContainsFunc(c.servers(), func(s *served) bool { return mayHaveTasks(s.introduced(), isNew) }) {
		return nil, noMethod(r.Method)
	}
	if err := checkTasks(r); err != nil {
		return nil, err
	}
	if r.Method == "tasks/list" {
		return c.listTasks(r)
	}
	name, _, known := publicid.Open(c.g.key, r.Members().Text("taskId"))
	s := c.server(name)
	if !known || s == nil {
		return nil, errNoTask
	}
	if len(s.introduced()) == 0 {
		r.Pass()
		s.lists["tools/list"].get(r.Context, shortWait) //nolint:errcheck // the request says why the server is down
	}
	if !mayHaveTasks(s.introduced(), isNew) {
		return nil, errNoTask
	}
	its := publicid.Task
	if r.Method == "tasks/result" {
		its = publicid.Call
	}
	result, err := s.requestTasks(r, publicid.Task.Own(c.g.key, s.name, r.Params))
	if err != nil {
		return nil, err
	}
	return its.Public(c.g.key, s.name, result), nil
}

// requestTasks sends a request for tasks to the server, and returns its result as it came.
func (s *served) requestTasks(r *mcpserver.Request, params json.RawMessage) (json.RawMessage, error) {
	result, err := s.c.run(r, s, nil, func(h messages.Header) messages.Operation {
		if slices.Contains(readingTaskMethods, r.Method) {
			h.Replay = messages.ReplayAlways
		}
		return &messages.Custom{Header: h, Name: r.Method, Params: params}
	})
	if err != nil {
		return nil, err
	}
	return result.(*messages.CustomResult).Result, nil
}

// publicTasks returns what a server has sent, with the ids of tasks as clients get them. A client in this process gets those of the
// server: its transport leads to one server as it is.
func (c *client) publicTasks(s *served, raw json.RawMessage) json.RawMessage {
	return c.withPublicTasks(s, publicid.Call, raw)
}

// withPublicTasks is publicTasks for a message that has its ids in other places.
func (c *client) withPublicTasks(s *served, at publicid.Places, raw json.RawMessage) json.RawMessage {
	if s == nil || c.offer.isHere() {
		return raw
	}
	return at.Public(c.g.key, s.name, raw)
}

// ownTasks returns what the client has answered to a server, with the ids of tasks as the server knows them.
func (c *client) ownTasks(s *served, raw json.RawMessage) json.RawMessage {
	if s == nil || c.offer.isHere() {
		return raw
	}
	return publicid.Call.Own(c.g.key, s.name, raw)
}

// ofRound returns the error of an operation. If it is a further round, the call may have run before.
func ofRound(r *mcpserver.Request, err error) error {
	failure, is := errors.AsType[*messages.Failure](err)
	if !is || failure.MayHaveRun || r.Context.Value(isFurtherRound{}) == nil {
		return err
	}
	again := *failure
	again.MayHaveRun = true
	return &again
}

// isFurtherRound is in the context of a request that is not the first round of its call.
type isFurtherRound struct{}
