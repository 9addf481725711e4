package supervisor_test

import (
	"context"
	"fmt"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
)

// The list of servers changes while sessions are open.
func ExampleSupervisor_Reload() {
	ctx, system, greeter := context.Background(), newSystem(), newGreeter()
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers: []mcpbridge.Server{
			{Name: "greeter", InMemory: greeter},
			{Name: "other", InMemory: newGreeter()},
			{Name: "search", URL: "https://search.example.com/mcp"},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	for _, server := range []string{"greeter", "other"} {
		if _, err := sup.Client().CallTool(ctx, server, "conversation-1", &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"name": "Ada"}}); err != nil {
			log.Fatal(err)
		}
	}

	closed, err := sup.Reload(ctx, []mcpbridge.Server{
		{Name: "greeter", InMemory: greeter},                        // unchanged: its sessions stay open
		{Name: "search", URL: "https://new.search.example.com/mcp"}, // changed: its sessions are closed
	}) // a server that is not in the list is removed, and its sessions are closed
	if err != nil {
		log.Fatal(err) // nothing was changed
	}
	fmt.Println("closed:", closed.Sessions)
	// Output: closed: 1
}
