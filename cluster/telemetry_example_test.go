package cluster_test

import (
	"context"
	"fmt"
	"log"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/telemetry"
	"github.com/mcpactor/mcpactor/toolset"
)

func newGreeter() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "greeter"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello"}}}, nil, nil
	})
	return server
}

// A member reports the calls and the sessions of the keys that it owns.
func ExampleMember_Supervisor_telemetry() {
	ctx, system, hub := context.Background(), actor.NewActorSystem(), cluster.NewInProcess()

	cfg := supervisor.Config{Servers: []supervisor.Server{{Name: "greeter", InMemory: newGreeter()}}}
	cfg, observe, err := telemetry.Instrument(cfg, telemetry.Config{})
	if err != nil {
		log.Fatal(err)
	}
	member, err := cluster.Start(ctx, system, cluster.Config{Supervisor: cfg, InProcess: hub})
	if err != nil {
		log.Fatal(err)
	}
	stop, err := observe(member.Supervisor())
	if err != nil {
		log.Fatal(err)
	}
	defer stop()
	defer member.Stop(ctx)

	result, err := member.Client().CallTool(ctx, "greeter", "conversation-1", &mcp.CallToolParams{Name: "greet"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Result.Content[0].(*mcp.TextContent).Text)
	// Output: hello
}

// A toolset of a member has the tools of sessions on all members.
func ExampleMember_toolset() {
	ctx, system, hub := context.Background(), actor.NewActorSystem(), cluster.NewInProcess()
	member, err := cluster.Start(ctx, system, cluster.Config{
		Supervisor: supervisor.Config{Servers: []supervisor.Server{{Name: "greeter", InMemory: newGreeter()}}},
		InProcess:  hub,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer member.Stop(ctx)

	tools, err := toolset.New(member.System(), member, toolset.Config{Scope: "conversation-1", Servers: []toolset.Filter{{Name: "*"}}})
	if err != nil {
		log.Fatal(err)
	}
	defer tools.Close()

	result, err := tools.Call(ctx, "greeter__greet", nil)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(toolset.Convert(result.Result).Text())
	// Output: hello
}
