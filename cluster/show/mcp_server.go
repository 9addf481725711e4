package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// newCounterServer returns an MCP server that has a counter for each session. The tool "add"
// changes the counter, and must not run twice for a call; "total" only reads it. executed is
// called with the caller's id of each call that runs.
func newCounterServer(executed func(call string)) *mcp.Server {
	var mu sync.Mutex
	counters := map[*mcp.ServerSession]int{}
	tool := func(by int) mcp.ToolHandlerFor[counterArguments, any] {
		return func(_ context.Context, req *mcp.CallToolRequest, in counterArguments) (*mcp.CallToolResult, any, error) {
			executed(in.Call)
			mu.Lock()
			counters[req.Session] += by
			text := fmt.Sprint(counters[req.Session])
			mu.Unlock()
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
		}
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "counter", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "add", Description: "adds one to the session's counter"}, tool(1))
	mcp.AddTool(server, &mcp.Tool{
		Name: "total", Description: "reads the session's counter",
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
	}, tool(0))
	return server
}

// counterArguments are the arguments of both tools.
type counterArguments struct {
	Call string `json:"call"`
}

// mcpServer is the MCP server of the show, on a loopback socket. The store is beside it.
type mcpServer struct {
	url  string
	http *http.Server
	mcp  *mcp.Server
}

// The paths of the server.
const mcpPath, storePath = "/mcp", "/store"

// newMCPServer starts the server. It calls executed for each tool call that runs.
func newMCPServer(executed func(call string), store http.Handler) (*mcpServer, error) {
	socket, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	server := newCounterServer(executed)
	mux := http.NewServeMux()
	mux.Handle(mcpPath, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	mux.Handle(storePath, store)
	s := &mcpServer{url: "http://" + socket.Addr().String(), http: &http.Server{Handler: mux}, mcp: server}
	go s.http.Serve(socket) //nolint:errcheck // Serve returns an error when the server is closed
	return s, nil
}

// sessions returns the number of open sessions.
func (s *mcpServer) sessions() (n int) {
	for range s.mcp.Sessions() {
		n++
	}
	return n
}

// close closes the server with all its connections and sessions.
func (s *mcpServer) close() {
	s.http.Close()
	for session := range s.mcp.Sessions() {
		session.Close() //nolint:errcheck // the connection is closed already
	}
}
