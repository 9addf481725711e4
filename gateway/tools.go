package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/gateway/internal/mcpserver"
	"github.com/mcpactor/mcpactor/internal/caller"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/toolset"
)

// PendingKey is the member of the Meta of a result that waits for an answer, see [PendingOf].
const PendingKey = "io.github.mcpactor/pending"

// PendingOf returns the call that a result of [Gateway.Tools] says is pending, or nil. [toolset.Toolset.Answer] answers it by its ID and
// its Digest.
func PendingOf(result *mcp.CallToolResult) *toolset.Pending {
	if result == nil || result.Meta[PendingKey] == nil {
		return nil
	}
	data, err := json.Marshal(result.Meta[PendingKey])
	pending := new(toolset.Pending)
	if err != nil || json.Unmarshal(data, pending) != nil {
		return nil
	}
	return pending
}

// Outcome returns what a model is told of a call over a transport of [Gateway.Server] or [Gateway.Tools]: the result in parts, or the text
// of the failure as an error. Of a call that is pending the text says so; see [PendingOf].
func Outcome(result *mcp.CallToolResult, err error) toolset.Output {
	if err == nil {
		return toolset.Convert(result)
	}
	text := toolset.Explain(err)
	if told, is := errors.AsType[*told](err); is {
		text = told.text
	}
	return toolset.Output{IsError: true, Parts: []toolset.Part{{Text: text}}}
}

// tools is what a client gets of a toolset.
type tools struct {
	c    *client
	from *toolset.Toolset

	mu        sync.Mutex
	shown     *[32]byte // the digest of the tools that the client has got or was told of; nil before it has asked
	reviewing bool
	again     bool // the tools may have changed since the review has begun
}

// list answers a request for the tools. The tool that reads long results is always there: many clients list once.
func (t *tools) list(r *mcpserver.Request) (any, error) {
	r.Pass()
	t.mu.Lock()
	t.again = false // or else the tools have changed while they are listed
	t.mu.Unlock()
	set, err := t.from.Tools(r.Context)
	if err != nil {
		return nil, err
	}
	for _, f := range set.Missing {
		t.c.log(r, "error", oneLine(f))
	}
	for _, f := range set.LeftOut {
		t.c.log(r, "warning", oneLine(f))
	}
	all, digest, err := listOf(set)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.shown = &digest
	t.begin()
	return all, nil
}

// listOf returns the result of tools/list, and its digest.
func listOf(set *toolset.Set) (all json.RawMessage, digest [32]byte, err error) {
	result := mcp.ListToolsResult{Tools: []*mcp.Tool{}}
	add := func(t *toolset.Tool) {
		result.Tools = append(result.Tools, &mcp.Tool{
			Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.Parameters(), Annotations: t.Annotations,
		})
	}
	if reads := set.Tool(toolset.ReadTool); len(set.Tools) > 0 { // first: what follows it may grow
		add(reads)
	}
	for _, t := range set.Tools {
		if t.Name != toolset.ReadTool {
			add(t)
		}
	}
	all, err = mcpserver.Encode(&result)
	return all, sha256.Sum256(all), err
}

// review tells the client if the tools have changed. It does not block.
func (t *tools) review() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.again = true
	t.begin()
}

// begin begins a review that is due. The caller holds the mutex.
func (t *tools) begin() {
	if t.again && t.shown != nil && !t.reviewing {
		t.reviewing = true
		go t.compare()
	}
}

// compare compares the tools with those that the client knows, until they stay the same.
func (t *tools) compare() {
	for {
		t.mu.Lock()
		if t.reviewing = t.again && t.c.ctx.Err() == nil; !t.reviewing {
			t.mu.Unlock()
			return
		}
		t.again = false
		t.mu.Unlock()
		t.c.tryFollow()
		set, err := t.from.Tools(t.c.ctx)
		if err != nil {
			continue // the toolset is closed, or the client has left
		}
		_, digest, err := listOf(set)
		t.mu.Lock()
		changed := err == nil && *t.shown != digest
		if changed {
			t.shown = &digest
		}
		t.mu.Unlock()
		if changed {
			t.c.Notify("notifications/tools/list_changed", nil, nil)
		}
	}
}

// call calls a tool.
func (t *tools) call(r *mcpserver.Request, params mcpserver.Object) (any, error) {
	r.Pass()
	name := params.Text("name")
	ctx := t.c.withProgress(r)
	t.setLevel(ctx, name)
	var arguments any
	if params["arguments"] != nil {
		arguments = params["arguments"]
	}
	if holder := t.holder(); holder.Len() > 0 {
		ctx = messages.WithAttributes(ctx, holder)
	}
	id := t.c.operationID()
	defer t.c.runs(id, r, nil)()
	result, err := t.from.Call(context.WithValue(ctx, caller.IDKey{}, id), name, arguments)
	out := t.from.Outcome(result, err)
	if pending, waits := errors.AsType[*toolset.Pending](err); waits {
		return &mcp.CallToolResult{IsError: true, Content: contentOf(out), Meta: mcp.Meta{PendingKey: pending}}, nil
	}
	if failure, is := errors.AsType[*messages.Failure](err); is {
		return nil, &told{failure, out.Parts[0].Text}
	}
	return &mcp.CallToolResult{IsError: out.IsError, Content: contentOf(out), Meta: result.Result.Meta}, err
}

// holder names the client, if it has a session that others share and in which handles are minted. In its own scope, the name makes no difference.
func (t *tools) holder() (holder messages.Attributes) {
	for _, s := range t.c.servers() {
		if s.holder.Len() > 0 {
			holder = s.holder
		}
	}
	return holder
}

// contentOf returns what a model gets of a result. What is no content of MCP is text.
func contentOf(out toolset.Output) (all []mcp.Content) {
	for _, part := range out.Parts {
		if part.Content != nil {
			all = append(all, part.Content)
		} else {
			all = append(all, &mcp.TextContent{Text: part.Text})
		}
	}
	return all
}

// setLevel sets the level of log messages on the session that a tool is called on, if the client has set one.
func (t *tools) setLevel(ctx context.Context, name string) {
	t.c.mu.Lock()
	level := t.c.record.LogLevel
	t.c.mu.Unlock()
	if level == "" {
		return
	}
	set, err := t.from.Tools(ctx)
	if err != nil {
		return
	}
	if tool := set.Tool(name); tool != nil {
		if s := t.c.server(tool.Server); s != nil {
			s.applyLevel(ctx, s.header(patience), level)
		}
	}
}
