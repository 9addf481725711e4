package supervisor_test

import (
	"context"
	"log"
	"log/slog"
	"os"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/supervisor"
)

// The supervisor and Proto.Actor write to one logger of log/slog.
func ExampleSlogLogger() {
	ctx := context.Background()
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: withoutTimes})

	logger := supervisor.SlogLogger(slog.New(handler))
	system := actor.NewActorSystem(supervisor.WithSystemLogger(logger))
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers: []supervisor.Server{{Name: "greeter", InMemory: newGreeter()}},
		Logger:  logger,
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := sup.Client().CallTool(ctx, "greeter", "conversation-1", &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"name": "Ada"}}); err != nil {
		log.Fatal(err)
	}
	sup.Stop(ctx)
	// Output:
	// level=INFO msg="supervisor started" servers=1 cap=256
	// level=INFO msg="server is up" server=greeter
	// level=INFO msg="session opened" server=greeter scope=conversation-1 generation=1 protocol=2026-07-28
	// level=INFO msg="supervisor stopping"
	// level=INFO msg="session closed" server=greeter scope=conversation-1 generation=1
	// level=INFO msg="supervisor stopped"
}

// withoutTimes leaves out what differs in each run of the example.
func withoutTimes(_ []string, a slog.Attr) slog.Attr {
	switch a.Key {
	case slog.TimeKey, "elapsed", "lifetime":
		return slog.Attr{}
	}
	return a
}
