package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The modes of [Serve].
const (
	ModeStdio = "stdio"
	ModeHTTP  = "http"
)

// Serve is the program that is measured against: a server with the tool "echo". In
// [ModeStdio] it speaks MCP over its standard streams; in [ModeHTTP] it listens on
// loopback and says where, on out. It returns when in ends.
func Serve(mode string, in io.Reader, out io.Writer) error {
	switch mode {
	case ModeStdio:
		return newServer().Run(context.Background(), &mcp.StdioTransport{})
	case ModeHTTP:
		return serveHTTP(in, out)
	}
	return fmt.Errorf("bench: %q is no mode of the server: use %s or %s", mode, ModeStdio, ModeHTTP)
}

// newServer returns a server with one tool, which does next to nothing.
func newServer() *mcp.Server {
	server := mcp.NewServer(implementation, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Annotations: &mcp.ToolAnnotations{IdempotentHint: true}}, echo)
	return server
}

var implementation = &mcp.Implementation{Name: "bench", Version: "1"}

type echoArgs struct {
	Text string `json:"text"`
}

func echo(_ context.Context, _ *mcp.CallToolRequest, in echoArgs) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
}

// echoParams are the parameters of all calls, new for each: the SDK writes into them.
func echoParams() *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello"}}
}

// The paths of the HTTP server.
const (
	pathJSON     = "/json"     // answers with JSON
	pathSSE      = "/sse"      // answers with event streams
	pathExpiring = "/expiring" // answers with JSON; its sessions can be made to expire
	pathExpire   = "/expire"   // does that, to all there are
)

func serveHTTP(in io.Reader, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	handler := func(opts *mcp.StreamableHTTPOptions) http.Handler {
		server := newServer()
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, opts)
	}
	e := &expiring{inner: handler(&mcp.StreamableHTTPOptions{JSONResponse: true}), known: map[string]bool{}}
	mux := http.NewServeMux()
	mux.Handle(pathJSON, handler(&mcp.StreamableHTTPOptions{JSONResponse: true}))
	mux.Handle(pathSSE, handler(nil))
	mux.Handle(pathExpiring, e)
	mux.HandleFunc(pathExpire, func(http.ResponseWriter, *http.Request) { e.expire() })
	server := &http.Server{Handler: mux}
	go func() {
		io.Copy(io.Discard, in) //nolint:errcheck // whatever ends it
		server.Close()
	}()
	fmt.Fprintf(out, "http://%s\n", l.Addr())
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}

// expiring refuses the sessions that it was told to forget, as the SDK does. The
// streams of those stay open, so that only a call finds out.
type expiring struct {
	inner http.Handler

	mu    sync.Mutex
	known map[string]bool // session id to whether it expired
}

const headerSession = "Mcp-Session-Id"

// ServeHTTP passes on what is not of an expired session.
func (e *expiring) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if id := r.Header.Get(headerSession); id != "" {
		e.mu.Lock()
		gone := e.known[id]
		if !gone {
			e.known[id] = false
		}
		e.mu.Unlock()
		if gone && r.Method == http.MethodPost {
			http.Error(w, "session not found", http.StatusNotFound)
			return
		}
	}
	e.inner.ServeHTTP(w, r)
}

func (e *expiring) expire() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for id := range e.known {
		e.known[id] = true
	}
}
