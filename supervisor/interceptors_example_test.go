package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// timed reports how long each operation takes, including its replay.
func timed(report func(method string, took time.Duration, err error)) supervisor.Interceptor {
	return func(next supervisor.Runner) supervisor.Runner {
		return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
			began := time.Now()
			result, err := next(ctx, op)
			report(op.Method(), time.Since(began), err)
			return result, err
		}
	}
}

// readOnly refuses the tools that have a name in a list.
func readOnly(writing ...string) supervisor.Interceptor {
	return func(next supervisor.Runner) supervisor.Runner {
		return func(ctx context.Context, op messages.Operation) (messages.Result, error) {
			if call, ok := op.(*messages.CallTool); ok {
				for _, name := range writing {
					if call.Params.Name == name {
						return nil, fmt.Errorf("%s writes, and this agent only reads", name)
					}
				}
			}
			return next(ctx, op)
		}
	}
}

// Interceptors measure and refuse.
func ExampleConfig_interceptors() {
	ctx, system := context.Background(), newSystem()
	count := func(method string, _ time.Duration, err error) { fmt.Println(method, "ok:", err == nil) }
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers:      []mcpbridge.Server{{Name: "greeter", InMemory: newGreeter()}},
		Interceptors: []supervisor.Interceptor{timed(count), readOnly("delete")},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	_, err = sup.Client().CallTool(ctx, "greeter", "conversation-1", &mcp.CallToolParams{Name: "delete"})
	fmt.Println(errors.Is(err, messages.CodeRefused), err)
	// Output:
	// tools/call ok: false
	// true tools/call "delete" on greeter/conversation-1: refused: delete writes, and this agent only reads
}
