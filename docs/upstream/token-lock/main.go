// Command token-lock shows that a call waits for a token whatever its context, and that no other
// request can be sent meanwhile, because the connection's lock is held while the token is fetched.
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
	"golang.org/x/oauth2"
)

const result = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`

// wait is how long a call may take when its context has ended. Its length matters only when this is mended.
const wait = 500 * time.Millisecond

// login is an OAuth handler. The authorization server does not answer while it is down.
type login struct {
	down  atomic.Bool
	asked chan struct{} // gets a value when it is asked while it is down
}

func (l *login) TokenSource(context.Context) (oauth2.TokenSource, error) { return l, nil }

func (l *login) Authorize(context.Context, *http.Request, *http.Response) error { return nil }

func (l *login) Token() (*oauth2.Token, error) {
	if l.down.Load() {
		l.asked <- struct{}{}
		select {}
	}
	return &oauth2.Token{AccessToken: "token"}, nil
}

func main() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req struct{ ID json.RawMessage }
		_ = json.NewDecoder(r.Body).Decode(&req) // of a GET and a DELETE: nothing
		switch {
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case req.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, result, req.ID)
		}
	}))
	defer server.Close()
	auth := &login{asked: make(chan struct{}, 1)}
	client := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	session, err := client.Connect(context.Background(), &mcp.StreamableClientTransport{Endpoint: server.URL, OAuthHandler: auth}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		log.Fatal(err)
	}
	auth.down.Store(true)
	hanging := 0
	returns := func(name string, f func()) {
		returned := make(chan struct{})
		go func() { f(); close(returned) }()
		select {
		case <-returned:
			fmt.Println(name, "returned")
		case <-time.After(wait):
			hanging++
			fmt.Printf("%s has not returned after %v\n", name, wait)
		}
	}
	returns("CallTool, whose context has ended,", func() {
		ctx, cancel := context.WithCancel(context.Background())
		go func() {
			<-auth.asked
			cancel()
		}()
		_, _ = session.CallTool(ctx, &mcp.CallToolParams{Name: "x"})
	})
	returns("ClientSession.ID", func() { session.ID() })
	if hanging > 0 {
		fmt.Println("still so: a token that does not come holds the whole session")
		return
	}
	fmt.Println("mended: a token that does not come holds nothing")
}
