// Command params-changed shows that CallTool writes into the parameters of its caller, so that a
// session with an older protocol refuses them afterwards.
package main

import (
	"context"
	"fmt"
	"log"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	ctx := context.Background()
	params := &mcp.CallToolParams{Name: "hello", Meta: mcp.Meta{"trace": "1"}}
	for _, supported := range [][]string{mcp.SupportedProtocolVersions(), {"2025-11-25"}} {
		server := mcp.NewServer(&mcp.Implementation{Name: "x", Version: "1"}, &mcp.ServerOptions{SupportedProtocolVersions: supported})
		mcp.AddTool(server, &mcp.Tool{Name: "hello"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{}, nil, nil
		})
		near, far := mcp.NewInMemoryTransports()
		if _, err := server.Connect(ctx, far, nil); err != nil {
			log.Fatal(err)
		}
		session, err := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil).Connect(ctx, near, nil)
		if err != nil {
			log.Fatal(err)
		}
		_, err = session.CallTool(ctx, params)
		fmt.Printf("a session with protocol %s: %v\n", session.InitializeResult().ProtocolVersion, err)
	}
	fmt.Println("the caller's _meta:", slices.Sorted(maps.Keys(params.Meta)))
	if len(params.Meta) > 1 {
		fmt.Println("still so: a call changes the parameters of its caller")
		return
	}
	fmt.Println("mended: a call leaves the parameters of its caller alone")
}
