// Command stray-answer shows that the answer to a request of one session is taken for the answer
// to a request of another, because every session counts its requests from 1.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const initialized = `{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`

// gateway has two clients. It sends the answer to the second to both, as gateways do that have one
// server process for all clients and broadcast what it says.
type gateway struct {
	clients  [2]net.Conn
	bobAsked chan struct{}
}

func (g *gateway) serve(client net.Conn) {
	for in := json.NewDecoder(client); ; {
		var req struct {
			ID     json.RawMessage
			Method string
			Params struct{ Name string }
		}
		switch err := in.Decode(&req); {
		case err != nil:
			return
		case req.Method == "initialize":
			fmt.Fprintf(client, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", req.ID, initialized)
		case req.Params.Name == "bob":
			close(g.bobAsked) // the answer takes longer
		case req.Params.Name == "alice":
			<-g.bobAsked
			for _, c := range g.clients {
				fmt.Fprintf(c, `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"the mail of alice"}]}}`+"\n", req.ID)
			}
		}
	}
}

func main() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	g := &gateway{bobAsked: make(chan struct{})}
	var sessions [2]*mcp.ClientSession
	client := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil)
	for i := range sessions {
		near, far := net.Pipe()
		g.clients[i] = far
		go g.serve(far)
		session, err := client.Connect(ctx, &mcp.IOTransport{Reader: near, Writer: near}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err != nil {
			log.Fatal(err)
		}
		sessions[i] = session
	}
	answered := make(chan string, 2)
	for i, user := range []string{"bob", "alice"} {
		go func() {
			if result, err := sessions[i].CallTool(ctx, &mcp.CallToolParams{Name: user}); err == nil {
				answered <- fmt.Sprintf("the call of %s returned %q", user, result.Content[0].(*mcp.TextContent).Text)
			}
		}()
	}
	fmt.Println(<-answered)
	select {
	case other := <-answered:
		fmt.Println(other)
		fmt.Println("still so: one session takes the answer to another")
	case <-time.After(10 * time.Second):
		fmt.Println("mended: each session takes its own answers only")
	}
}
