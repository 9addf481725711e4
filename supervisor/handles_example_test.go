package supervisor_test

import (
	"context"
	"crypto/rand"
	"fmt"
	"log"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// newBrowsers returns a server whose tools open and close browsers, and a function that says how many are open.
func newBrowsers() (server *mcp.Server, open func() int) {
	type browser struct {
		ID string `json:"browser_id"`
	}
	var browsers sync.Map
	server = mcp.NewServer(&mcp.Implementation{Name: "browsers"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "open_browser"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, browser, error) {
		b := browser{rand.Text()}
		browsers.Store(b.ID, nil)
		return nil, b, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "close_browser"}, func(_ context.Context, _ *mcp.CallToolRequest, b browser) (*mcp.CallToolResult, any, error) {
		browsers.Delete(b.ID)
		return nil, nil, nil
	})
	return server, func() (n int) {
		for range browsers.Range {
			n++
		}
		return n
	}
}

// Two conversations share a scope. What one has opened is closed when it ends.
func ExampleClient_ListHandles() {
	browsers, open := newBrowsers()
	sup, err := supervisor.Start(newSystem(), supervisor.Config{Servers: []supervisor.Server{{
		Name: "web", InMemory: browsers,
		Handles: []mcpbridge.Handle{{Mint: "open_browser", Path: "browser_id", Release: "close_browser"}},
	}}})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(context.Background())
	client, ctx := sup.Client(), context.Background()
	for _, conversation := range []string{"first", "second"} {
		ctx := messages.WithAttributes(ctx, messages.NewAttributes(map[string]string{messages.HolderAttribute: conversation}))
		if _, err := client.CallTool(ctx, "web", "team", &mcp.CallToolParams{Name: "open_browser"}); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println("open:", open())
	if _, err := client.Do(ctx, &messages.ReleaseHandles{Scope: "team", Holder: "first"}); err != nil {
		log.Fatal(err)
	}
	held, err := client.ListHandles(ctx, "team")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("open:", open(), "held:", len(held.Handles), held.Handles[0].Argument)
	released, err := client.ReleaseHandles(ctx, "team")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("open:", open(), "released:", released.Released)
	// Output:
	// open: 2
	// open: 1 held: 1 browser_id
	// open: 0 released: 1
}
