// Command http-sse shows two things that end a session over HTTP+SSE, with all of its calls: an
// event that is no message, as servers send it to keep the stream open, and a POST that is refused
// for a moment.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const result = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"},"content":[]}}`

func main() {
	ended := 0
	for _, tool := range []string{"ping event", "503 to a POST"} {
		call, next := calls(tool)
		if next != nil {
			ended++
		}
		fmt.Printf("%s: %v; the next call: %v\n", tool, call, next)
	}
	if ended > 0 {
		fmt.Printf("still so: %d of 2 end the session\n", ended)
		return
	}
	fmt.Println("mended: neither ends the session")
}

// calls returns the errors of a call of a tool, and of another.
func calls(tool string) (first, second error) {
	events := make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			for event := "event: endpoint\ndata: /\n\n"; ; {
				fmt.Fprint(w, event)
				w.(http.Flusher).Flush()
				select {
				case event = <-events:
				case <-r.Context().Done():
					return
				}
			}
		}
		var req struct {
			ID     json.RawMessage
			Params struct{ Name string }
		}
		_ = json.NewDecoder(r.Body).Decode(&req)
		switch req.Params.Name {
		case "503 to a POST":
			http.Error(w, "the server is being updated", http.StatusServiceUnavailable)
			return
		case "ping event":
			events <- "event: ping\ndata: keepalive\n\n"
		}
		w.WriteHeader(http.StatusAccepted)
		if req.ID != nil {
			events <- fmt.Sprintf("event: message\ndata: "+result+"\n\n", req.ID)
		}
	}))
	defer server.Close()
	defer server.CloseClientConnections()
	ctx := context.Background()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil).Connect(ctx, &mcp.SSEClientTransport{Endpoint: server.URL}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	_, first = session.CallTool(ctx, &mcp.CallToolParams{Name: tool})
	_, second = session.CallTool(ctx, &mcp.CallToolParams{Name: "next"})
	return first, second
}
