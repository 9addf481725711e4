package gateway_test

import (
	"context"
	"fmt"
	"log"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/gateway"
	"github.com/mcpactor/mcpactor/supervisor"
)

func ExampleGateway_Server() {
	greeter := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	mcp.AddTool(greeter, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, in struct{ Name string }) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + in.Name + "!"}}}, nil, nil
	})
	if err := converse(context.Background(), supervisor.Server{Name: "greeter", InMemory: greeter}); err != nil {
		log.Fatal(err)
	}
	// Output: Hello, Ada!
}

func converse(ctx context.Context, servers ...supervisor.Server) error {
	system := actor.NewActorSystem(supervisor.WithSystemLogger(zerolog.Nop()))
	sup, err := supervisor.Start(system, supervisor.Config{Servers: gateway.Prepare(servers...)})
	if err != nil {
		return err
	}
	defer sup.Stop(ctx)
	gw, err := gateway.New(sup, gateway.Config{})
	if err != nil {
		return err
	}
	defer gw.Close()
	transport := gw.Server("greeter", gateway.Scope{Name: "conversation-1", Ends: true})
	client := mcp.NewClient(&mcp.Implementation{Name: "agent", Version: "1"}, nil)
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		return err
	}
	defer session.Close() // ends the sessions of the conversation

	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"Name": "Ada"}})
	fmt.Println(gateway.Outcome(result, err).Text()) // what to tell the model, also of a failure
	return nil
}
