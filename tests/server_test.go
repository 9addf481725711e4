package tests

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
)

// endpoint is a real MCP server on a real socket, which keeps a counter per
// session and can be made to misbehave.
type endpoint struct {
	t    *testing.T
	addr string

	mu        sync.Mutex
	http      *http.Server
	handler   http.Handler
	sdks      []*mcp.Server // one for each restart
	counters  map[string]int
	runs      map[string]int
	requests  []string           // "POST tools/call", "DELETE", …
	known     map[string]bool    // session ids given out
	forgotten map[string]refusal // session ids, with the answer that they get
	// meddle may answer a request in place of the server.
	meddle func(w http.ResponseWriter, r *http.Request, body string) bool
	gate   chan struct{} // calls of "wait" end when it is closed
}

// refusal answers a request for a session that is not known.
type refusal func(w http.ResponseWriter, id string)

func newEndpoint(t *testing.T) *endpoint {
	e := &endpoint{
		t: t, addr: "127.0.0.1:0", counters: map[string]int{}, runs: map[string]int{},
		known: map[string]bool{}, forgotten: map[string]refusal{}, gate: make(chan struct{}),
	}
	e.listen()
	return e
}

// listen starts the server, without any session.
func (e *endpoint) listen() {
	sdk := mcp.NewServer(&mcp.Implementation{Name: "endpoint", Version: "1"}, nil)
	count := func(ctx context.Context, req *mcp.CallToolRequest, in struct {
		Call string `json:"call"`
	},
	) (*mcp.CallToolResult, any, error) {
		e.mu.Lock()
		e.runs[in.Call]++
		e.counters[req.Session.ID()]++
		n := e.counters[req.Session.ID()]
		gate := e.gate
		e.mu.Unlock()
		if strings.HasPrefix(req.Params.Name, "wait") {
			select {
			case <-gate:
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(n)}}}, nil, nil
	}
	mcp.AddTool(sdk, &mcp.Tool{Name: "count"}, count)
	mcp.AddTool(sdk, &mcp.Tool{Name: "wait"}, count)
	mcp.AddTool(sdk, &mcp.Tool{Name: "wait/ro", Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true}}, count)

	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk }, nil)
	e.set(func() { e.handler, e.sdks = handler, append(e.sdks, sdk) })
	e.reopen()
}

// reopen listens on the same address again, with the sessions there are.
func (e *endpoint) reopen() {
	l, err := net.Listen("tcp", e.addr)
	require.NoError(e.t, err)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.addr = l.Addr().String()
	e.http = &http.Server{Handler: e}
	go e.http.Serve(l) // it ends with Close
}

// stop ends the server with all its connections.
func (e *endpoint) stop() { e.http.Close() }

// end stops the server, with the sessions that it was made to forget.
func (e *endpoint) end() {
	e.stop()
	e.set(func() {
		select {
		case <-e.gate:
		default:
			close(e.gate) // a failed test may have left calls behind
		}
	})
	for _, sdk := range e.sdks {
		for s := range sdk.Sessions() {
			s.Close()
		}
	}
}

// restart makes a new server on the same address, which knows no session.
func (e *endpoint) restart() {
	e.stop()
	e.listen()
}

func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	id := r.Header.Get("Mcp-Session-Id")
	line := r.Method
	if _, rest, ok := strings.Cut(string(body), `"method":"`); ok {
		method, _, _ := strings.Cut(rest, `"`)
		line += " " + method
	}
	e.mu.Lock()
	e.requests = append(e.requests, line)
	if id != "" {
		e.known[id] = true
	}
	answer, meddle, handler := e.forgotten[id], e.meddle, e.handler
	e.mu.Unlock()
	switch {
	case meddle != nil && meddle(w, r, string(body)):
	case answer != nil:
		_, rest, _ := strings.Cut(string(body), `"id":`)
		n, _, _ := strings.Cut(rest, ",")
		answer(w, n)
	default:
		handler.ServeHTTP(w, r)
	}
}

// forget makes the server answer the sessions it knows now as it would answer
// any id.
func (e *endpoint) forget(answer refusal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id := range e.known {
		e.forgotten[id] = answer
	}
}

func (e *endpoint) set(change func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change()
}

// count returns how many requests of a kind there were.
func (e *endpoint) count(line string) (n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.requests {
		if r == line {
			n++
		}
	}
	return n
}

// running waits until n calls have begun.
func (e *endpoint) running(n int) {
	require.Eventually(e.t, func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		return len(e.runs) >= n
	}, 20*time.Second, time.Millisecond)
}

// overHTTP runs a scenario on a real endpoint named "s".
func overHTTP(t *testing.T, cfg supervisor.Config, scenario func(w *world, e *endpoint)) {
	t.Helper()
	e := newEndpoint(t)
	defer e.end()
	if len(cfg.Servers) == 0 {
		cfg.Servers = []mcpbridge.Server{{Name: "s"}}
	}
	cfg.Servers[0].URL = "http://" + e.addr
	w := start(t, cfg)
	w.executed = func() map[string]int { e.mu.Lock(); defer e.mu.Unlock(); return e.runs }
	scenario(w, e)
	w.end()
}
