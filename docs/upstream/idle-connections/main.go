// Command idle-connections counts the connections that 64 callers open over HTTP: with the client
// that the SDK uses by default, which keeps two idle ones for each server, and with one that keeps
// as many as there are callers.
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	callers = 64
	calls   = 20 // of each
)

// opened returns how many connections the calls open.
func opened(client *http.Client) int {
	tools := mcp.NewServer(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	mcp.AddTool(tools, &mcp.Tool{Name: "hello"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{}, nil, nil
	})
	var count atomic.Int64
	server := httptest.NewUnstartedServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return tools }, &mcp.StreamableHTTPOptions{JSONResponse: true}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			count.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	defer server.CloseClientConnections()
	ctx := context.Background()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil).Connect(ctx, &mcp.StreamableClientTransport{Endpoint: server.URL, HTTPClient: client}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range calls {
				if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "hello"}); err != nil {
					log.Fatal(err)
				}
			}
		})
	}
	all.Wait()
	return int(count.Load())
}

func main() {
	usual, enough := opened(nil), opened(&http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: callers}})
	fmt.Printf("%d calls by %d callers: %d connections with the default client, %d with enough idle ones\n", callers*calls, callers, usual, enough)
	if usual > 2*enough {
		fmt.Println("still so: most connections are closed after a call or two")
		return
	}
	fmt.Println("mended: connections are kept")
}
