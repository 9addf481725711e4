package supervisor_test

import (
	"context"
	"fmt"
	"log"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// GatewayClient is the actor of a client of a gateway.
type GatewayClient struct{ news chan string }

func (g *GatewayClient) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case messages.Request:
		c.Respond(&messages.Refusal{Reason: "the client is busy"})
	case *messages.ToolsChanged:
		g.news <- msg.Key.Scope + ": the tools have changed"
	}
}

// Each client of a gateway is a scope, which declares what the client can do.
func ExampleConfig_capabilities() {
	ctx, system := context.Background(), newSystem()
	server := mcp.NewServer(&mcp.Implementation{Name: "poet", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "write"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		text := "a poem of my own"
		if req.Session.InitializeParams().Capabilities.Sampling != nil {
			text = "a poem of your model"
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	sup, err := supervisor.Start(system, supervisor.Config{Servers: []mcpbridge.Server{{Name: "poet", InMemory: server}}})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	news := make(chan string, 1)
	client := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &GatewayClient{news} }))
	_, err = sup.Client().Do(ctx, &messages.Bind{
		Scope: "client-7", Owner: client, Handler: client, Subscriber: client,
		Capabilities: &mcp.ClientCapabilities{Sampling: &mcp.SamplingCapabilities{}},
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, scope := range []string{"client-7", "client-8"} {
		reply, err := sup.Client().CallTool(ctx, "poet", scope, &mcp.CallToolParams{Name: "write"})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(scope+":", reply.Result.Content[0].(*mcp.TextContent).Text)
	}
	server.RemoveTools("write")
	fmt.Println(<-news)
	// Output:
	// client-7: a poem of your model
	// client-8: a poem of my own
	// client-7: the tools have changed
}
