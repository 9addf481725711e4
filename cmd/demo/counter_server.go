package main

import (
	"context"
	"fmt"
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
