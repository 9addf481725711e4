// Command alone is a program that requires the module, and nothing of a cluster.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/supervisor"
)

func main() {
	ctx, system := context.Background(), actor.NewActorSystem()
	defer system.Shutdown()
	server := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello"}}}, nil, nil
	})
	sup, err := supervisor.Start(system, supervisor.Config{Servers: []supervisor.Server{{Name: "greeter", InMemory: server}}})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	reply, err := sup.Client().CallTool(ctx, "greeter", "someone", &mcp.CallToolParams{Name: "greet"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Result.Content[0].(*mcp.TextContent).Text)
}
