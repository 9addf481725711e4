// Command unmatched-answer shows that a call waits for its deadline when the answer to its own
// POST has come, and is no response to it.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const result = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"},"content":[]}}`

// answers are the bodies of answers with status 200. Each is complete.
var answers = [][2]string{
	{"the id as a string", `{"jsonrpc":"2.0","id":"2","result":{"content":[]}}`},
	{"a request", `{"jsonrpc":"2.0","id":1,"method":"ping"}`},
}

func main() {
	waiting := 0
	for _, answer := range answers {
		err := call(answer[1])
		if errors.Is(err, context.DeadlineExceeded) {
			waiting++
		}
		fmt.Printf("%s: %v\n", answer[0], err)
	}
	if waiting > 0 {
		fmt.Printf("still so: with %d of %d answers a call waits for its deadline\n", waiting, len(answers))
		return
	}
	fmt.Println("mended: a call fails when its answer is none")
}

// call calls a tool of a server that gives one answer to all calls.
func call(answer string) error {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.NewDecoder(r.Body).Decode(&req) // of a GET and a DELETE: nothing
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case req.Method == "tools/call":
			fmt.Fprint(w, answer)
		case req.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		default:
			fmt.Fprintf(w, result, req.ID)
		}
	}))
	defer server.Close()
	client := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), &mcp.StreamableClientTransport{Endpoint: server.URL}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "x"})
	return err
}
