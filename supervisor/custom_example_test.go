package supervisor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
)

type searchParams struct {
	mcp.ParamsBase
	Query string `json:"query"`
}

type searchResult struct {
	mcp.ResultBase
	Titles []string `json:"titles"`
}

// newLibrary returns a server with a method beyond MCP.
func newLibrary() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "library", Version: "1"}, nil)
	err := mcp.AddReceivingCustomMethod(server, "acme/search", func(_ context.Context, _ *mcp.ServerSession, params *searchParams) (*searchResult, error) {
		return &searchResult{Titles: []string{"All about the " + params.Query}}, nil
	})
	if err != nil {
		log.Fatal(err)
	}
	return server
}

// A method that is not part of MCP is called.
func ExampleClient_Custom() {
	ctx, system := context.Background(), newSystem()
	sup, err := supervisor.Start(system, supervisor.Config{Servers: []mcpbridge.Server{{
		Name: "library", InMemory: newLibrary(),
		CustomMethods: []string{"acme/search"}, CustomNotifications: []string{"acme/indexed"},
	}}})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	reply, err := sup.Client().Custom(ctx, "library", "conversation-1", "acme/search", map[string]any{"query": "otter"})
	if err != nil {
		log.Fatal(err)
	}
	var found struct{ Titles []string }
	if err := json.Unmarshal(reply.Result, &found); err != nil {
		log.Fatal(err)
	}
	fmt.Println(found.Titles)
	// Output: [All about the otter]
}
