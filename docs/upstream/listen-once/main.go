// Command listen-once shows that notifications end without a word under protocol 2026-07-28 when
// the stream of subscriptions/listen is cut: it is opened once, and nobody is told of its end.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	result = `{"jsonrpc":"2.0","id":%s,"result":{"supportedVersions":["2026-07-28"],"resultType":"complete","ttlMs":0,"cacheScope":"public","capabilities":{"tools":{"listChanged":true}},"content":[]}}`
	// wait is how long the stream may take to be opened again. Its length matters only when this is mended.
	wait = 3 * time.Second
)

func main() {
	listens := make(chan struct{}, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&req)
		switch {
		case req.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case req.Method == "subscriptions/listen": // a proxy cuts the stream
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": hello\n\n")
			listens <- struct{}{}
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, result, req.ID)
		}
	}))
	defer server.Close()
	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {},
	})
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: server.URL}, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	<-listens
	select {
	case <-listens:
		fmt.Println("mended: the stream was opened again")
		return
	case <-time.After(wait):
	}
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "x"})
	fmt.Printf("the stream was cut %v ago, and not opened again; a call: %v\n", wait, err)
	fmt.Println("still so: notifications have ended, and the session looks well")
}
