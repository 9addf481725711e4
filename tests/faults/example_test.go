package faults_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// Fault-test your own agent: here it is one that buys something with each call.
func Example() {
	tools := faults.NewTools()
	server, _ := faults.Serve(tools.Handler)
	defer tools.Close()
	defer server.Close()
	sup, _ := supervisor.Start(actor.NewActorSystem(), supervisor.Config{
		Servers: []mcpbridge.Server{{Name: "shop", URL: server.URL()}},
	})
	defer sup.Stop(context.Background())
	buy := func(what string) error {
		params := &mcp.CallToolParams{Name: "count", Arguments: map[string]any{"call": what}}
		_, err := sup.Client().CallTool(context.Background(), "shop", "alice", params)
		return err
	}

	fmt.Println("book:", buy("book"))
	server.Expire(faults.Expiries()[0])
	fmt.Println("lamp:", buy("lamp"))
	server.Inject("tools/call", faults.Times(1, faults.CutAnswer(0)))
	fmt.Println("sofa lost:", errors.Is(buy("sofa"), messages.CodeLost))
	fmt.Println(tools.Executions())
	// Output:
	// book: <nil>
	// lamp: <nil>
	// sofa lost: true
	// map[book:1 lamp:1 sofa:1]
}
