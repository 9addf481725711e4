// Command cluster is a program that requires the module cluster.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/cluster/etcdstore"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
)

func main() {
	ctx, system := context.Background(), actor.NewActorSystem()
	defer system.Shutdown()
	server := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello"}}}, nil, nil
	})
	member, err := cluster.Start(ctx, system, cluster.Config{
		Supervisor: supervisor.Config{Servers: []supervisor.Server{{Name: "greeter", InMemory: server}}},
		InProcess:  cluster.NewInProcess(),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer member.Stop(ctx)
	reply, err := member.Client().CallTool(ctx, "greeter", "someone", &mcp.CallToolParams{Name: "greet"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Result.Content[0].(*mcp.TextContent).Text)
}

// The store of records is in the same module.
var _ mcpbridge.Store = (*etcdstore.Store)(nil)
