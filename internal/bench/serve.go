package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The modes of [Serve].
const (
	ModeStdio = "stdio"
	ModeHTTP  = "http"
)

// Serve is the program that is measured against: a server with the tool "echo". In
// [ModeStdio] it speaks MCP over its standard streams; in [ModeHTTP] it listens on
// loopback and says where, on out, and answers the lines of in. It returns when in
// ends.
func Serve(mode string, in io.Reader, out io.Writer) error {
	switch mode {
	case ModeStdio:
		if file := os.Getenv(awayVar); file != "" {
			go leave(file)
			time.Sleep(awayTick / 2) // it may be time already
		}
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
)

// The lines that are asked of the process of the HTTP server.
const (
	askExpire   = "expire"   // make the sessions that can expire do so
	askAccepted = "accepted" // say how many connections were accepted so far
)

// serveHTTP answers each line of in by one of out.
func serveHTTP(in io.Reader, out io.Writer) error {
	s, err := listenHTTP()
	if err != nil {
		return err
	}
	fmt.Fprintln(out, s.origin)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		if lines.Text() == askExpire {
			s.expiring.expire()
		}
		fmt.Fprintln(out, s.accepted.Load())
	}
	return s.close()
}

// serverHTTP is the HTTP server, in this process.
type serverHTTP struct {
	origin   string
	expiring *expiring
	accepted atomic.Int64 // connections

	server http.Server
	ended  chan error
}

// listenHTTP starts it.
func listenHTTP() (*serverHTTP, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	handler := func(opts *mcp.StreamableHTTPOptions) http.Handler {
		server := newServer()
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, opts)
	}
	s := &serverHTTP{
		origin: "http://" + l.Addr().String(), ended: make(chan error, 1),
		expiring: &expiring{inner: handler(&mcp.StreamableHTTPOptions{JSONResponse: true}), known: map[string]bool{}},
	}
	mux := http.NewServeMux()
	mux.Handle(pathJSON, handler(&mcp.StreamableHTTPOptions{JSONResponse: true}))
	mux.Handle(pathSSE, handler(nil))
	mux.Handle(pathExpiring, s.expiring)
	s.server.Handler = mux
	s.server.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			s.accepted.Add(1)
		}
	}
	go func() { s.ended <- s.server.Serve(l) }()
	return s, nil
}

// close ends it, and returns why it had ended before, if it had.
func (s *serverHTTP) close() error {
	s.server.Close()
	if err := <-s.ended; !errors.Is(err, http.ErrServerClosed) {
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
