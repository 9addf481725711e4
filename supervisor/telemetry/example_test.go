package telemetry_test

import (
	"context"
	"fmt"
	"log"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	tracenoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/telemetry"
)

func newGreeter() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "greeter"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello"}}}, nil, nil
	})
	return server
}

// A program sets the global providers of OpenTelemetry first: those of the SDK, with its
// exporters, in place of those that do nothing here.
func ExampleStart() {
	otel.SetTracerProvider(tracenoop.NewTracerProvider())
	otel.SetMeterProvider(metricnoop.NewMeterProvider())

	cfg := supervisor.Config{Servers: []supervisor.Server{{Name: "greeter", InMemory: newGreeter()}}}
	sup, stop, err := telemetry.Start(actor.NewActorSystem(), cfg, telemetry.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer stop()
	defer sup.Stop(context.Background())

	// The span in ctx, if there is one, is the parent of the call.
	ctx := context.Background()
	result, err := sup.Client().CallTool(ctx, "greeter", "conversation-1", &mcp.CallToolParams{Name: "greet"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Result.Content[0].(*mcp.TextContent).Text)
	// Output: hello
}

// turn asks an agent to do something, as a part of the span in ctx.
type turn struct{ ctx context.Context }

// agent is an actor that calls tools.
type agent struct {
	mcp  *actor.PID // of the supervisor
	said chan string
}

func (a *agent) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case *turn:
		call := &messages.CallTool{Header: messages.To("greeter", "conversation-1"), Params: &mcp.CallToolParams{Name: "greet"}}
		call.Trace = telemetry.TraceOf(msg.ctx)
		c.Request(a.mcp, call)
	case *messages.ToolResult:
		a.said <- msg.Result.Content[0].(*mcp.TextContent).Text
	case *messages.Failure:
		a.said <- msg.Error()
	}
}

// The message of an actor has no context, and carries the span in its header.
func ExampleTraceOf() {
	system := actor.NewActorSystem()
	cfg := supervisor.Config{Servers: []supervisor.Server{{Name: "greeter", InMemory: newGreeter()}}}
	sup, stop, err := telemetry.Start(system, cfg, telemetry.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer stop()
	defer sup.Stop(context.Background())
	said := make(chan string)
	pid := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &agent{sup.PID(), said} }))

	ctx, span := otel.Tracer("agents").Start(context.Background(), "turn")
	defer span.End()
	system.Root.Send(pid, &turn{ctx})
	fmt.Println(<-said)
	// Output: hello
}

// The providers of a supervisor can be its own, and metrics can have the names of tools.
func ExampleConfig() {
	cfg := supervisor.Config{Servers: []supervisor.Server{{Name: "greeter", InMemory: newGreeter()}}}
	sup, stop, err := telemetry.Start(actor.NewActorSystem(), cfg, telemetry.Config{
		TracerProvider: tracenoop.NewTracerProvider(),
		MeterProvider:  metricnoop.NewMeterProvider(),
		ToolNames:      true,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer stop()
	defer sup.Stop(context.Background())
	fmt.Println(sup.Servers())
	// Output: [greeter]
}
