package faults

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Tools is one MCP server, or several, whose tools keep a counter for each session and
// record every execution. All tools take the optional arguments "call", the caller's
// name of the call, and "scope", which [Server.Overlaps] uses:
//
//	count  adds one to the session's counter, and returns it
//	wait   does the same, and returns after [Tools.Release] or when it is cancelled
//	fail   returns the error "session not found"
//	echo   returns the caller's name of the call
//	big    returns as many bytes as its argument "size" says
//
// Each tool has a copy with the suffix "/ro", which is annotated as read-only. The
// server also has the resource "file:///one", which accepts subscriptions, a resource
// template, and the prompt "greet" with the argument "who". The methods may be called
// from any goroutine.
type Tools struct {
	// JSON makes the handlers answer with JSON in place of event streams.
	JSON bool
	// Stateless makes the handlers work without sessions.
	Stateless bool
	// Resumable adds ids to the events of answers, so that a client can continue a broken
	// answer.
	Resumable bool
	// SSE makes the handlers use the HTTP+SSE transport of protocol 2024-11-05.
	SSE bool

	mu       sync.Mutex
	servers  []*mcp.Server
	counters map[*mcp.ServerSession]int
	runs     map[string]int
	gate     chan struct{}
}

// NewTools returns a server whose counters are 0.
func NewTools() *Tools {
	return &Tools{counters: map[*mcp.ServerSession]int{}, runs: map[string]int{}, gate: make(chan struct{})}
}

// toolArgs are the arguments of all tools.
type toolArgs struct {
	Call  string `json:"call,omitempty"`
	Scope string `json:"scope,omitempty"`
	Size  int    `json:"size,omitempty"`
}

// Server returns an MCP server with the tools, for [mcpbridge.Server.InMemory] or for
// another handler.
func (t *Tools) Server() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "faults", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(_ context.Context, req *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{req.Params.Argument.Value + "!"}}}, nil
		},
	})
	for _, name := range []string{"count", "wait", "fail", "echo", "big"} {
		mcp.AddTool(server, &mcp.Tool{Name: name}, t.run)
		mcp.AddTool(server, &mcp.Tool{Name: name + "/ro", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, t.run)
	}
	server.AddResource(&mcp.Resource{URI: "file:///one", Name: "one"}, readResource)
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "file:///any/{name}", Name: "any"}, readResource)
	server.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "who"}}}, getPrompt)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.servers = append(t.servers, server)
	return server
}

func readResource(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: "first"}}}, nil
}

func getPrompt(_ context.Context, req *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	return &mcp.GetPromptResult{Description: "hello " + req.Params.Arguments["who"]}, nil
}

// run implements every tool.
func (t *Tools) run(ctx context.Context, req *mcp.CallToolRequest, in toolArgs) (*mcp.CallToolResult, any, error) {
	t.mu.Lock()
	if in.Call != "" {
		t.runs[in.Call]++
	}
	t.counters[req.Session]++
	text, gate := fmt.Sprint(t.counters[req.Session]), t.gate
	t.mu.Unlock()
	switch strings.TrimSuffix(req.Params.Name, "/ro") {
	case "wait":
		select {
		case <-gate:
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	case "fail":
		return nil, nil, fmt.Errorf("session not found")
	case "echo":
		text = in.Call
	case "big":
		text = strings.Repeat("x", in.Size)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
}

// Handler returns a new handler that serves the tools and knows no session. The
// sessions of earlier handlers end, as at the end of a process.
func (t *Tools) Handler() http.Handler {
	t.end()
	server := t.Server()
	get := func(*http.Request) *mcp.Server { return server }
	if t.SSE {
		return mcp.NewSSEHandler(get, nil)
	}
	opts := &mcp.StreamableHTTPOptions{JSONResponse: t.JSON, Stateless: t.Stateless}
	if t.Resumable {
		opts.EventStore = mcp.NewMemoryEventStore(nil)
	}
	return mcp.NewStreamableHTTPHandler(get, opts)
}

// end ends the sessions of all servers.
func (t *Tools) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, server := range t.servers {
		endSessions(server)
	}
}

// Close releases the waiting calls, and ends all sessions.
func (t *Tools) Close() {
	t.Release()
	t.end()
}

// Executions returns the number of runs of each call, by its argument "call".
func (t *Tools) Executions() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.runs)
}

// Release makes all calls of "wait" return, later calls included.
func (t *Tools) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.gate:
	default:
		close(t.gate)
	}
}
