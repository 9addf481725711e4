// Command etcd is one of the members of a cluster with etcd, TLS and a store that they share. Its argument is the
// address of the member, such as 10.0.0.1:8090. With the argument "server" it is the MCP server that they use.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/cluster"
	"github.com/mcpactor/mcpactor/cluster/etcdstore"
	"github.com/mcpactor/mcpactor/supervisor"
)

func main() {
	const server = "127.0.0.1:8080"
	if os.Args[1] == "server" {
		log.Fatal(http.ListenAndServe(server, mcp.NewStreamableHTTPHandler(newCounter, nil)))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	endpoints := []string{"http://127.0.0.1:2379"}
	store, err := etcdstore.Open(etcdstore.Config{Endpoints: endpoints})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close() //nolint:errcheck // the process ends
	member, err := cluster.Start(ctx, actor.NewActorSystem(), cluster.Config{
		Supervisor: supervisor.Config{
			Servers: []supervisor.Server{{Name: "counter", URL: "http://" + server}},
			Store:   store,
			Logger:  zerolog.New(os.Stderr).Level(zerolog.InfoLevel),
		},
		Listen: os.Args[1],
		Etcd:   cluster.Etcd{Endpoints: endpoints},
		TLS:    &cluster.TLS{CertFile: "member.pem", KeyFile: "member.key", CAFile: "rootCA.pem"},
	})
	if err != nil {
		log.Fatal(err)
	}
	for ctx.Err() == nil {
		for _, scope := range []string{"alice", "bob", "carol", "dave", "erin", "frank"} {
			reply, err := member.Client().CallTool(ctx, "counter", scope, &mcp.CallToolParams{Name: "count"})
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

// newCounter returns the MCP server of one session. Its tool counts the calls of the session.
func newCounter(*http.Request) *mcp.Server {
	var calls atomic.Int64
	server := mcp.NewServer(&mcp.Implementation{Name: "counter", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "count"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		text := fmt.Sprint(calls.Add(1))
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
	})
	return server
}
