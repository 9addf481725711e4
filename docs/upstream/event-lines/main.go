// Command event-lines sends event streams that follow the specification of server-sent events
// (https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream), and
// shows what the streamable client makes of them.
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

const result = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"},"content":[]}}`

// streams are event streams with the answer to a call, each with a name.
var streams = [][2]string{
	{"as usual", "data: " + result + "\n\n"},
	{"a field without a colon", "data: " + result + "\nkeepalive\n\n"},
	{"an empty id, which needs no colon", "id\ndata: " + result + "\n\n"},
	{"lines that end with CR", "event: message\rdata: " + result + "\r\r"},
	{"a byte order mark", "\ufeffdata: " + result + "\n\n"},
	{"an event that is cut off", "id: 1\nretry: 1\ndata:\n\ndata: {\"jsonrpc\":"},
}

func main() {
	refused := 0
	for _, stream := range streams {
		call, next := calls(stream[1])
		if call != nil || next != nil {
			refused++
		}
		fmt.Printf("%-35s the call %s, the next %s\n", stream[0]+":", outcome(call), outcome(next))
	}
	if refused > 0 {
		fmt.Printf("still so: %d of %d streams fail the call\n", refused, len(streams))
		return
	}
	fmt.Println("mended: all streams are read")
}

func outcome(err error) string {
	if err != nil {
		return "failed"
	}
	return "worked"
}

// calls returns the errors of two calls, of which the first is answered by an event stream.
func calls(stream string) (first, second error) {
	var answer string // what the stream is resumed with
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage
			Params struct{ Name string }
		}
		_ = json.NewDecoder(r.Body).Decode(&req) // of a GET and a DELETE: nothing
		switch {
		case r.Header.Get("Last-Event-ID") == "1":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, answer)
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case req.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case req.Params.Name == "stream":
			w.Header().Set("Content-Type", "text/event-stream")
			answer = fmt.Sprintf("data: "+result+"\n\n", req.ID)
			fmt.Fprint(w, strings.ReplaceAll(stream, "%s", string(req.ID)))
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, result, req.ID)
		}
	}))
	defer server.Close()
	ctx := context.Background()
	client := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: server.URL}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	_, first = session.CallTool(ctx, &mcp.CallToolParams{Name: "stream"})
	_, second = session.CallTool(ctx, &mcp.CallToolParams{Name: "next"})
	return first, second
}
