// Command which-error shows what the errors of failed calls say: not whether the server has run
// the call, and not reliably whether the connection has ended.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"net/http/httptest"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	result   = `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"x","version":"1"},"content":[]}}`
	declined = `{"jsonrpc":"2.0","id":%s,"error":{"code":-32003,"message":"payment is declined"}}`
)

type request struct {
	ID     json.RawMessage
	Method string
}

// overHTTP calls a tool of a server that handles calls with run.
func overHTTP(run func(*httptest.Server, http.ResponseWriter, request), before func(*httptest.Server)) error {
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req request
		_ = json.NewDecoder(r.Body).Decode(&req) // of a GET and a DELETE: nothing
		switch {
		case r.Method == http.MethodGet:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case req.ID == nil:
			w.WriteHeader(http.StatusAccepted)
		case req.Method == "tools/call":
			run(server, w, req)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, result, req.ID)
		}
	}))
	defer server.Close()
	return call(&mcp.StreamableClientTransport{Endpoint: server.URL}, func() { before(server) })
}

// call calls a tool.
func call(transport mcp.Transport, before func()) error {
	ctx := context.Background()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "x", Version: "1"}, nil).Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		log.Fatal(err)
	}
	defer session.Close()
	before()
	_, err = session.CallTool(ctx, &mcp.CallToolParams{Name: "pay"})
	return err
}

func main() {
	nothing := func(*httptest.Server) {}
	near, far := net.Pipe()
	go func() { // a server that runs the call, and ends
		for in := json.NewDecoder(far); ; {
			var req request
			if err := in.Decode(&req); err != nil || req.Method == "tools/call" {
				_ = far.Close()
				return
			}
			if req.ID != nil {
				fmt.Fprintf(far, result+"\n", req.ID)
			}
		}
	}()
	odd := 0
	for _, c := range []struct {
		name   string
		err    error
		code   int64 // that it should have
		closed bool  // that it should be
	}{
		{name: "not sent: nobody listens", err: overHTTP(nil, (*httptest.Server).Close), code: -32005},
		{name: "the server ran it, and cut the connection", err: overHTTP(func(*httptest.Server, http.ResponseWriter, request) { panic(http.ErrAbortHandler) }, nothing)},
		{name: "the server answered with its own error -32003", err: overHTTP(func(_ *httptest.Server, w http.ResponseWriter, req request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, declined, req.ID)
		}, nothing), code: -32003},
		{name: "the server ran it, and closed the pipe", err: call(&mcp.IOTransport{Reader: near, Writer: near}, func() {}), closed: true},
	} {
		var wire *jsonrpc.Error
		var code int64
		if errors.As(c.err, &wire) {
			code = wire.Code
		}
		closed := errors.Is(c.err, mcp.ErrConnectionClosed)
		if code != c.code || closed != c.closed {
			odd++
		}
		fmt.Printf("%-46s code %6d, ErrConnectionClosed %v\n", c.name+":", code, closed)
	}
	if odd > 0 {
		fmt.Printf("still so: %d of 4 errors do not say what happened\n", odd)
		return
	}
	fmt.Println("mended: the errors say what happened")
}
