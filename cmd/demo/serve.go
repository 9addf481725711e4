package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// journalVar names the file in which the processes of the show's stdio server
// write down what they do, for the show to check.
const journalVar = "MCPACTOR_DEMO_JOURNAL"

// serveCmd makes this program the stdio server of the show.
type serveCmd struct{}

// Run serves until stdin ends.
func (*serveCmd) Run(streams) error {
	journal, err := os.OpenFile(os.Getenv(journalVar), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return &usageError{errors.New("serve is started by the show, not by hand")}
	}
	defer journal.Close()
	fmt.Fprintln(journal, "pid", os.Getpid())
	server := newToolServer(func(call string) { fmt.Fprintln(journal, "run", call) })
	return server.Run(context.Background(), &mcp.StdioTransport{})
}

// newToolServer returns a server with a counter per session. Its tool "add"
// must not run twice; "total" may. executed is called for each run of either,
// with the caller's name for the call.
func newToolServer(executed func(call string)) *mcp.Server {
	var mu sync.Mutex
	counters := map[*mcp.ServerSession]int{}
	tool := func(by int) mcp.ToolHandlerFor[toolArgs, any] {
		return func(_ context.Context, req *mcp.CallToolRequest, in toolArgs) (*mcp.CallToolResult, any, error) {
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

// toolArgs are the arguments of both tools.
type toolArgs struct {
	Call string `json:"call"`
}
