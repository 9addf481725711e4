// Command one-call-fails-all shows that one answer that the streamable client cannot use fails
// the other calls of its session, too.
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

var bad = []struct {
	name   string
	answer func(http.ResponseWriter)
}{
	{"400", func(w http.ResponseWriter) { http.Error(w, "no such region", http.StatusBadRequest) }},
	{"401", func(w http.ResponseWriter) { http.Error(w, "token expired", http.StatusUnauthorized) }},
	{"403", func(w http.ResponseWriter) { http.Error(w, "this tool is not for you", http.StatusForbidden) }},
	{"413", func(w http.ResponseWriter) { http.Error(w, "request too large", http.StatusRequestEntityTooLarge) }},
	{"a page of a proxy", func(w http.ResponseWriter) { say(w, "text/html", "<h1>Please wait</h1>") }},
	{"half a JSON body", func(w http.ResponseWriter) { say(w, "application/json", `{"jsonrpc":"2.0","id":`) }},
	{"an event without JSON", func(w http.ResponseWriter) { say(w, "text/event-stream", "data: oops\n\n") }},
	{"another Mcp-Session-Id", func(w http.ResponseWriter) { w.Header().Set("Mcp-Session-Id", "2"); say(w, "text/html", "") }},
}

func say(w http.ResponseWriter, contentType, body string) {
	w.Header().Set("Content-Type", contentType)
	fmt.Fprint(w, body)
}

func main() {
	ended := 0
	for _, answer := range bad {
		inFlight, next := others(answer.answer)
		if next != nil {
			ended++
		}
		fmt.Printf("%-24s a call in flight %s, the next call %s\n", answer.name+":", outcome(inFlight), outcome(next))
	}
	if ended > 0 {
		fmt.Printf("still so: %d of %d answers to one call end the session\n", ended, len(bad))
		return
	}
	fmt.Println("mended: each fails its own call alone")
}

func outcome(err error) string {
	if err != nil {
		return "failed"
	}
	return "worked"
}

// others returns the errors of the other calls of a session when one call is answered badly:
// of one that the server is running, and of the next.
func others(answer func(http.ResponseWriter)) (inFlight, next error) {
	running, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		_ = json.NewDecoder(r.Body).Decode(&req) // of a GET and a DELETE: nothing
		w.Header().Set("Mcp-Session-Id", "1")
		switch {
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case req.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case req.Params.Name == "bad":
			answer(w)
		default:
			if req.Params.Name == "slow" {
				close(running)
				<-release
			}
			say(w, "application/json", fmt.Sprintf(result, req.ID))
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
	call := func(tool string) error {
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool})
		return err
	}
	slow := make(chan error, 1)
	go func() { slow <- call("slow") }()
	<-running
	if call("bad") == nil {
		log.Fatal("the bad answer is no error")
	}
	next = call("fast")
	close(release)
	return <-slow, next
}
