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
	"path"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The modes of [Serve].
const (
	ModeStdio = "stdio"
	ModeHTTP  = "http"
)

// Serve runs the server that is called in the benchmarks, with the tool "echo". In
// [ModeStdio] it speaks MCP over its standard streams. In [ModeHTTP] it listens on
// loopback and writes its origin to out; in controls it. It returns at the end of in.
func Serve(mode string, in io.Reader, out io.Writer) error {
	switch mode {
	case ModeStdio:
		if file := os.Getenv(exitFileVar); file != "" {
			go exitWhenExists(file)
			time.Sleep(exitPoll / 2) // the file may exist already
		}
		return newServer(toolOf(os.Getenv(contentVar))).Run(context.Background(), &mcp.StdioTransport{})
	case ModeHTTP:
		return serveHTTP(in, out)
	}
	return fmt.Errorf("bench: the server has no mode %q: use %s or %s", mode, ModeStdio, ModeHTTP)
}

var implementation = &mcp.Implementation{Name: "bench", Version: "1"}

// newServer returns a server with one tool.
func newServer(tool mcp.ToolHandlerFor[echoArgs, any]) *mcp.Server {
	server := mcp.NewServer(implementation, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Annotations: &mcp.ToolAnnotations{IdempotentHint: true}}, tool)
	return server
}

type echoArgs struct {
	Text string `json:"text"`
}

// echo returns its argument.
func echo(_ context.Context, _ *mcp.CallToolRequest, in echoArgs) (*mcp.CallToolResult, any, error) {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: in.Text}}}, nil, nil
}

// echoParams returns the parameters of a call. The SDK writes into them, so that each
// call has its own.
func echoParams() *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello"}}
}

// overHTTP serves over HTTP, with answers in JSON or as event streams. The handler knows
// no session at first.
func overHTTP(server *mcp.Server, json bool) http.Handler {
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{JSONResponse: json})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { handler.ServeHTTP(withLength{w}, r) })
}

// withLength says how long an answer in JSON is, which the SDK writes at once. Without it
// long answers would have no Content-Length, unlike those of most servers.
type withLength struct{ http.ResponseWriter }

func (w withLength) Write(p []byte) (int, error) {
	if w.Header().Get("Content-Type") == "application/json" {
		w.Header().Set("Content-Length", strconv.Itoa(len(p)))
	}
	return w.ResponseWriter.Write(p)
}

func (w withLength) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// The paths of the HTTP server. The first two have a path below for each of the large
// contents.
const (
	pathJSON     = "/json"     // answers with JSON
	pathSSE      = "/sse"      // answers with event streams
	pathExpiring = "/expiring" // answers with JSON, and forgets its sessions for each line of in
)

// serveHTTP writes its origin to out, and then a line for each line of in.
func serveHTTP(in io.Reader, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	// The streams of forgotten sessions stay open, so that only a call notices.
	var expiring atomic.Value
	expiring.Store(overHTTP(newServer(echo), true))
	mux := http.NewServeMux()
	for _, content := range append([]string{""}, largeContents...) {
		mux.Handle(path.Join(pathJSON, content), overHTTP(newServer(toolOf(content)), true))
		mux.Handle(path.Join(pathSSE, content), overHTTP(newServer(toolOf(content)), false))
	}
	mux.HandleFunc(pathExpiring, func(w http.ResponseWriter, r *http.Request) { expiring.Load().(http.Handler).ServeHTTP(w, r) })
	server := http.Server{Handler: mux}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	fmt.Fprintln(out, "http://"+l.Addr().String())
	for lines := bufio.NewScanner(in); lines.Scan(); {
		expiring.Store(overHTTP(newServer(echo), true))
		fmt.Fprintln(out, "expired")
	}
	server.Close()
	if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("bench: %w", err)
	}
	return nil
}
