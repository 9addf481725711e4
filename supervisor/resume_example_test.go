package supervisor_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/resume"
	"github.com/mcpactor/mcpactor/supervisor"
)

// A session goes on in the next run of a program.
func ExampleConfig_store() {
	server := newShop()
	defer server.Close()
	dir, err := os.MkdirTemp("", "mcpactor")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	for range 2 { // two runs
		shop(server.URL, filepath.Join(dir, "sessions"))
	}
	// Output:
	// 1 in the cart
	// 2 in the cart
}

// shop is one run of a program.
func shop(url, path string) {
	ctx := context.Background()
	system := newSystem()
	store, err := resume.Open(path, resume.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers:   []mcpbridge.Server{{Name: "shop", URL: url}},
		Store:     store,
		LeaveOpen: true,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx) // before the store is closed
	reply, err := sup.Client().CallTool(ctx, "shop", "conversation-1", &mcp.CallToolParams{Name: "add"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Result.Content[0].(*mcp.TextContent).Text)
}

// newShop returns a server for the examples, which keeps a cart for each session.
func newShop() *httptest.Server {
	return httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server {
		cart := 0
		server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
		mcp.AddTool(server, &mcp.Tool{Name: "add"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			cart++
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprint(cart, " in the cart")}}}, nil, nil
		})
		return server
	}, nil))
}
