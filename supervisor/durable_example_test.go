package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
)

// newBank returns a server that pays, and dies before it has said so.
func newBank() *mcp.Server {
	bank := mcp.NewServer(&mcp.Implementation{Name: "bank", Version: "1"}, nil)
	var paid atomic.Int32
	schema := map[string]any{"type": "object"}
	bank.AddTool(&mcp.Tool{Name: "pay", InputSchema: schema}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		paid.Add(1)
		<-ctx.Done()
		return nil, ctx.Err()
	})
	bank.AddTool(&mcp.Tool{Name: "payments", InputSchema: schema}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf("%d payment", paid.Load())}}}, nil
	})
	return bank
}

// A call is sent, and its answer does not come. Whoever asks again learns what became of it.
func ExampleConfig_resolve() {
	system := newSystem()
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers:   []supervisor.Server{{Name: "bank", InMemory: newBank()}},
		CallStore: new(resume.Memory), // or resume.Open, for a later process
		Resolve: func(ctx context.Context, client *supervisor.Client, lost *messages.CallTool) (messages.Resolution, *mcp.CallToolResult, error) {
			payments, err := client.CallTool(ctx, lost.Key.Server, lost.Key.Scope, &mcp.CallToolParams{Name: "payments"})
			if err != nil {
				return messages.ResolvedUnknown, nil, err // the next one who asks looks again
			}
			if payments.Result.Content[0].(*mcp.TextContent).Text == "0 payment" {
				return messages.ResolvedNotRun, nil, nil // it is sent again
			}
			return messages.ResolvedRan, payments.Result, nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(context.Background())

	pay := func() (*messages.ToolResult, error) {
		ctx := messages.WithDurable(context.Background(), "invoice-4711")
		ctx = supervisor.WithHeader(ctx, messages.Header{Deadline: time.Now().Add(time.Second / 2)})
		return sup.Client().CallTool(ctx, "bank", "user-7", &mcp.CallToolParams{Name: "pay"})
	}
	_, err = pay()
	if failure, is := errors.AsType[*messages.Failure](err); is {
		fmt.Println(failure.Code, failure.MayHaveRun)
	}
	result, err := pay()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Result.Content[0].(*mcp.TextContent).Text)
	// Output:
	// deadline true
	// 1 payment
}
