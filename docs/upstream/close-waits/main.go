// Command close-waits shows two cases in which ClientSession.Close does not return: while a call
// without a deadline is in flight, and when a notification handler calls it.
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

const initialized = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"}}}`

// wait is how long Close may take. Its length matters only when this is mended.
const wait = 500 * time.Millisecond

// serve answers initialize. It answers a call by a notification, and not at all.
func serve(conn net.Conn) {
	for in := json.NewDecoder(conn); ; {
		var req struct {
			ID     json.RawMessage
			Method string
		}
		if err := in.Decode(&req); err != nil {
			return
		}
		switch req.Method {
		case "initialize":
			fmt.Fprintf(conn, initialized+"\n", req.ID)
		case "tools/call":
			fmt.Fprintln(conn, `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)
		}
	}
}

// closes reports whether Close returns. It is called by, or after, a notification.
func closes(inHandler bool) bool {
	near, far := net.Pipe()
	go serve(far)
	var session *mcp.ClientSession
	notified, closed := make(chan struct{}), make(chan struct{})
	end := func() {
		session.Close()
		close(closed)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
			close(notified)
			if inHandler {
				end()
			}
		},
	})
	session, err := client.Connect(context.Background(), &mcp.IOTransport{Reader: near, Writer: near}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go session.CallTool(ctx, &mcp.CallToolParams{Name: "slow"}) //nolint:errcheck // it has no answer
	<-notified
	if inHandler {
		cancel() // so that the call is not what Close waits for
	} else {
		go end()
	}
	select {
	case <-closed:
		return true
	case <-time.After(wait):
		return false
	}
}

func main() {
	duringCall, inHandler := closes(false), closes(true)
	fmt.Println("Close returns while a call is in flight:", duringCall)
	fmt.Println("Close returns in a notification handler:", inHandler)
	if duringCall && inHandler {
		fmt.Println("mended: Close returns")
		return
	}
	fmt.Println("still so: Close waits without end, and has no context")
}
