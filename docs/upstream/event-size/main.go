// Command event-size sends an event that is larger than DefaultMaxEventSize to a streamable client
// with MaxEventSize 0, which is documented to select that default.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const result = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"},"content":[{"type":"text","text":%q}]}}`

func main() {
	large := strings.Repeat("x", mcp.DefaultMaxEventSize+1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&req) // of a GET and a DELETE: nothing
		switch {
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case req.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case req.Method == "tools/call":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: "+result+"\n\n", req.ID, large)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, result, req.ID, "")
		}
	}))
	defer server.Close()
	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	for _, limit := range []int{mcp.DefaultMaxEventSize, 0} {
		session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: server.URL, MaxEventSize: limit}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			log.Fatal(err)
		}
		_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "large"})
		session.Close()
		fmt.Printf("MaxEventSize %d, an event of %d bytes: %v\n", limit, len(large), err)
		if limit == 0 && err == nil {
			fmt.Println("still so: MaxEventSize 0 is no limit")
			return
		}
	}
	fmt.Println("mended: MaxEventSize 0 is DefaultMaxEventSize")
}
