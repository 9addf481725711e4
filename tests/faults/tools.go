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

// Tools is an MCP server, or several, whose tools count for each session and
// record every execution. All its tools take the optional arguments "call", the
// caller's own name of the call, and "scope", which [Server.Overlaps] reads:
//
//	count  adds one to the session's counter, and returns it
//	wait   does so, and returns after [Tools.Release], or when it is cancelled
//	fail   returns an error of its own: "session not found"
//	echo   returns the caller's own name of the call
//	big    returns as many bytes as its argument "size" says
//
// Each is there a second time, annotated as read-only, with the suffix "/ro".
// There is a resource, "file:///one", which may be subscribed to, a template of
// resources, and a prompt, "greet", with an argument "who". Its methods may be called from any goroutine.
type Tools struct {
	// JSON makes the handlers answer with JSON in place of event streams.
	JSON bool
	// Stateless makes handlers without sessions.
	Stateless bool
	// Resumable gives the events of answers ids, so that an answer that was cut
	// can be resumed.
	Resumable bool
	// SSE makes handlers of the HTTP+SSE transport of protocol 2024-11-05.
	SSE bool

	mu       sync.Mutex
	servers  []*mcp.Server
	counters map[*mcp.ServerSession]int
	runs     map[string]int
	gate     chan struct{}
}

// NewTools returns a server that has counted nothing.
func NewTools() *Tools {
	return &Tools{counters: map[*mcp.ServerSession]int{}, runs: map[string]int{}, gate: make(chan struct{})}
}

// toolArgs are the arguments of all tools.
type toolArgs struct {
	Call    string `json:"call,omitempty"`
	Scope   string `json:"scope,omitempty"`
	Size    int    `json:"size,omitempty"`
	Refusal string `json:"refusal,omitempty"`
}

// Server returns an MCP server with the tools: for [mcpbridge.Server.InMemory],
// or for a handler of one's own.
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

// run is every tool.
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

// Handler returns a handler of its own that serves the tools, and knows no
// session. The sessions of earlier ones are ended, as by the end of a process.
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
		for session := range server.Sessions() {
			go session.Close() //nolint:errcheck // it waits for calls that run
		}
	}
}

// Close releases the calls that wait, and ends all sessions.
func (t *Tools) Close() {
	t.Release()
	t.end()
}

// Executions returns how often each call has run, by its argument "call".
func (t *Tools) Executions() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.runs)
}

// Release lets the calls of "wait" return, those to come included.
func (t *Tools) Release() {
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-t.gate:
	default:
		close(t.gate)
	}
}
