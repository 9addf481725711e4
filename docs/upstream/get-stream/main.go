// Command get-stream shows that Connect waits for the answer to the GET of the standalone stream,
// and that its context does not end the wait.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const initialized = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`

// wait is how long Connect may take when its context has ended. Its length matters only when this is mended.
const wait = time.Second

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	opening, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		switch {
		case r.Method == http.MethodGet: // a proxy holds back the headers until there is an event
			close(opening)
			<-release
		case json.NewDecoder(r.Body).Decode(&req) == nil && req.Method == "initialize":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, initialized, req.ID)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	defer server.Close()
	defer close(release)
	client := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	connected := make(chan error, 1)
	go func() {
		session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: server.URL}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err == nil {
			defer session.Close()
		}
		connected <- err
	}()
	<-opening
	cancel()
	select {
	case err := <-connected:
		fmt.Println("mended: Connect returned:", err)
	case <-time.After(wait):
		fmt.Printf("initialize was answered; Connect waits still, %v after the end of its context\n", wait)
		fmt.Println("still so: Connect waits for the stream, and not for its context")
	}
}
