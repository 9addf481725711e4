package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// A call waits 20 seconds for its session, and may then run for as long as it needs.
func ExampleWithHeader() {
	sup, err := supervisor.Start(newSystem(), supervisor.Config{Servers: []supervisor.Server{
		{Name: "desk", URL: "http://127.0.0.1:1/mcp"}, // where nobody listens
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(context.Background())
	start := time.Now().Add(-20 * time.Second) // the example does not want to wait

	ctx := supervisor.WithHeader(context.Background(), messages.Header{WaitUntil: start.Add(20 * time.Second), Deadline: start.Add(10 * time.Minute)})
	_, err = sup.Client().CallTool(ctx, "desk", "agent", &mcp.CallToolParams{Name: "report"})
	if errors.Is(err, messages.CodeUnavailable) {
		fmt.Println("no session in time; the tool has not run")
	}
	// Output: no session in time; the tool has not run
}

// A call may take an hour, as long as its server is heard from time to time. This server is never heard.
func ExampleWithHeader_quiet() {
	desk := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
	mcp.AddTool(desk, &mcp.Tool{Name: "report"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		<-ctx.Done()
		return nil, nil, ctx.Err()
	})
	sup, err := supervisor.Start(newSystem(), supervisor.Config{Servers: []supervisor.Server{{Name: "desk", InMemory: desk}}})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(context.Background())

	patience := 30 * time.Millisecond // the example does not want to wait
	ctx := supervisor.WithHeader(context.Background(), messages.Header{Quiet: patience, Deadline: time.Now().Add(time.Hour)})
	_, err = sup.Client().CallTool(ctx, "desk", "agent", &mcp.CallToolParams{Name: "report"})
	if errors.Is(err, messages.CodeQuiet) {
		fmt.Println("the server is silent; the tool may have run")
	}
	// Output: the server is silent; the tool may have run
}
