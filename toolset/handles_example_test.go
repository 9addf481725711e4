package toolset_test

import (
	"context"
	"fmt"
	"log"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// A model whose context was compacted is told what it has to close.
func ExampleToolset_Held() {
	type browser struct {
		ID string `json:"browser_id"`
	}
	ctx := context.Background()
	server := mcp.NewServer(&mcp.Implementation{Name: "web", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "open_browser"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, browser, error) {
		return nil, browser{"b-17"}, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "close_browser"}, func(context.Context, *mcp.CallToolRequest, browser) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
	sup, err := supervisor.Start(nil, supervisor.Config{Servers: []mcpbridge.Server{{
		Name: "web", InMemory: server, Handles: []mcpbridge.Handle{{Mint: "open_browser", Path: "browser_id", Release: "close_browser"}},
	}}})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	tools, err := toolset.New(nil, sup, toolset.Config{Scope: "conversation-1", Servers: []toolset.Filter{{Name: "web"}}})
	if err != nil {
		log.Fatal(err)
	}
	defer tools.Close()

	if _, err := tools.Call(ctx, "web__open_browser", nil); err != nil {
		log.Fatal(err)
	}
	note, err := tools.Held(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(note) // put it into the next request to the model, unless it is empty
	// Output:
	// You hold 1 handle. Release it when you are done with it.
	// - browser_id b-17 of server "web", minted by web__open_browser just now: release it with web__close_browser
}
