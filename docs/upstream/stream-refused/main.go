// Command stream-refused shows that a session and its calls end when the server refuses to open
// the standalone stream again, once and for a moment.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const result = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"},"content":[]}}`

func main() {
	var streams atomic.Int32
	running, reopened, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&req) // of a GET and a DELETE: nothing
		switch {
		case r.Method == http.MethodGet:
			switch streams.Add(1) {
			case 1: // is cut when the call runs, and shall be opened again at once
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "retry: 1\nid: 1\ndata:\n\n")
				w.(http.Flusher).Flush()
				<-running
			case 2:
				http.Error(w, "the server is being updated", http.StatusServiceUnavailable)
			default:
				w.Header().Set("Content-Type", "text/event-stream")
				w.(http.Flusher).Flush()
				close(reopened)
				<-done
			}
		case req.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case req.Method == "tools/call":
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			close(running)
			select {
			case <-reopened:
			case <-done:
			case <-time.After(10 * time.Second): // a client may do without the stream
			}
			fmt.Fprintf(w, "data: "+result+"\n\n", req.ID)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, result, req.ID)
		}
	}))
	defer server.Close()
	defer close(done)
	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: server.URL}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		log.Fatal(err)
	}
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "slow"})
	fmt.Println("a call that the server is running:", err)
	if next := session.Ping(ctx, nil); err != nil || next != nil {
		fmt.Println("the next request:", next)
		fmt.Println("still so: one 503 to the stream ends the session")
		return
	}
	fmt.Println("mended: the stream is opened again, or left")
}
