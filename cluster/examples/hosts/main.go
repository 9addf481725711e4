// Command hosts is one of three members on one machine. Its argument is its port: 8091, 8092 or 8093.
package main

import (
	"context"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/supervisor"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	address := "127.0.0.1:" + os.Args[1]
	member, err := cluster.Start(ctx, actor.NewActorSystem(), cluster.Config{
		Supervisor: supervisor.Config{
			Servers: []supervisor.Server{{Name: "greeter", InMemory: newGreeter()}},
			Logger:  zerolog.New(os.Stderr).Level(zerolog.InfoLevel),
		},
		Listen:    address,
		Hosts:     []string{"127.0.0.1:8091", "127.0.0.1:8092", "127.0.0.1:8093"},
		Directory: "members",
	})
	if err != nil {
		log.Fatal(err)
	}
	for ctx.Err() == nil {
		for _, scope := range []string{"alice", "bob", "carol", "dave", "erin", "frank"} {
			reply, err := member.Client().CallTool(ctx, "greeter", scope, &mcp.CallToolParams{Name: "greet"})
			if err != nil {
				log.Print(err)
				continue
			}
			log.Print(scope, " on ", reply.Supervisor, ": ", reply.Result.Content[0].(*mcp.TextContent).Text)
		}
		time.Sleep(time.Second)
	}
	if err := member.Stop(context.Background()); err != nil {
		log.Print(err)
	}
}

// newGreeter returns an MCP server in this process.
func newGreeter() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello"}}}, nil, nil
	})
	return server
}
