package benchmarks

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

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

// echoParams returns the parameters of a call. The SDK writes into them, so that each call has its
// own.
func echoParams() *mcp.CallToolParams {
	return &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello"}}
}

// The large contents of results.
const (
	contentText  = "text"  // 1 MB: lines with quotes, which JSON escapes
	contentImage = "image" // 5 MB, which are a third more in JSON
)

var largeContents = []string{contentText, contentImage}

// largeResult returns a result with a large content.
func largeResult(content string) *mcp.CallToolResult {
	if content == contentText {
		const line = "A line of \"text\", as a file has them, with quotes and an end.\n"
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat(line, 1_000_000/len(line))}}}
	}
	image := make([]byte, 5_000_000)
	for i := range image {
		image[i] = byte(i * i >> 3)
	}
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.ImageContent{Data: image, MIMEType: "image/png"}}}
}

// toolOf returns a tool that returns a large content, or echo if there is none.
func toolOf(content string) mcp.ToolHandlerFor[echoArgs, any] {
	if content == "" {
		return echo
	}
	result := sync.OnceValue(func() *mcp.CallToolResult { return largeResult(content) })
	return func(context.Context, *mcp.CallToolRequest, echoArgs) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: result().Content}, nil, nil
	}
}

// exitPoll is how often a stdio server looks for the file that makes it exit.
const exitPoll = 20 * time.Millisecond

// runStdio serves over the standard streams, without protocol 2026-07-28 if it is old. The process exits as soon as a file exists.
func runStdio(old bool, content, exitFile string) error {
	if exitFile != "" {
		go func() {
			for {
				if _, err := os.Stat(exitFile); err == nil {
					os.Exit(1)
				}
				time.Sleep(exitPoll)
			}
		}()
		time.Sleep(exitPoll / 2) // the file may exist already
	}
	server := newServer(toolOf(content))
	if old {
		server.AddReceivingMiddleware(onlyOld)
	}
	return server.Run(context.Background(), &mcp.StdioTransport{})
}

// The paths of the HTTP server. The first two have a path below for each of the large contents.
const (
	pathJSON     = "/json"     // answers with JSON
	pathSSE      = "/sse"      // answers with event streams
	pathExpiring = "/expiring" // answers with JSON
	pathExpire   = "/expire"   // makes the server forget the sessions of pathExpiring
)

// runHTTP serves over HTTP. It writes its origin to out, and ends with in.
func runHTTP(in io.Reader, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	// The streams of forgotten sessions stay open, so that only a call notices.
	var expiring atomic.Value
	expiring.Store(handler(newServer(echo), true))
	mux := http.NewServeMux()
	for _, content := range append([]string{""}, largeContents...) {
		mux.Handle(path.Join(pathJSON, content), handler(newServer(toolOf(content)), true))
		mux.Handle(path.Join(pathSSE, content), handler(newServer(toolOf(content)), false))
	}
	mux.HandleFunc(pathExpiring, func(w http.ResponseWriter, r *http.Request) { expiring.Load().(http.Handler).ServeHTTP(w, r) })
	mux.HandleFunc(pathExpire, func(http.ResponseWriter, *http.Request) { expiring.Store(handler(newServer(echo), true)) })
	fmt.Fprintln(out, "http://"+l.Addr().String())
	go http.Serve(l, mux)
	_, err = io.Copy(io.Discard, in)
	return err
}

// handler serves over HTTP, with answers in JSON or as event streams. It knows no session at first.
func handler(server *mcp.Server, json bool) http.Handler {
	inner := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{JSONResponse: json})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { inner.ServeHTTP(withLength{w}, r) })
}

// withLength says how long an answer in JSON is, which the SDK writes at once. Without it long
// answers would have no Content-Length, unlike those of most servers.
type withLength struct{ http.ResponseWriter }

func (w withLength) Write(p []byte) (int, error) {
	if w.Header().Get("Content-Type") == "application/json" {
		w.Header().Set("Content-Length", strconv.Itoa(len(p)))
	}
	return w.ResponseWriter.Write(p)
}

func (w withLength) Unwrap() http.ResponseWriter { return w.ResponseWriter }
