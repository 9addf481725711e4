package debug_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/supervisor/debug"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// The page is mounted like net/http/pprof. Here it is requested as JSON.
func Example() {
	ctx := context.Background()
	sup, err := supervisor.Start(newSystem(), supervisor.Config{
		Servers: []supervisor.Server{{Name: "search", InMemory: faults.NewTools().Server()}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)

	page := debug.New(sup, debug.Config{})
	defer page.Close()
	mux := http.NewServeMux()
	mux.Handle("/debug/mcp/", page)
	server := httptest.NewServer(mux)
	defer server.Close()

	if _, err := sup.Client().CallTool(ctx, "search", "conversation-1", &mcp.CallToolParams{Name: "count"}); err != nil {
		log.Fatal(err)
	}
	answer, err := http.Get(server.URL + "/debug/mcp/?format=json")
	if err != nil {
		log.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(strings.Contains(string(body), `"key":{"server":"search","scope":"conversation-1"}`))
	// Output: true
}

// A server whose Shutdown does not wait for the pages that are open.
func ExampleHandler_Close() {
	ctx := context.Background()
	sup, err := supervisor.Start(newSystem(), supervisor.Config{
		Servers: []supervisor.Server{{Name: "search", InMemory: faults.NewTools().Server()}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	listener, err := net.Listen("tcp", "127.0.0.1:0") // such as 127.0.0.1:6060
	if err != nil {
		log.Fatal(err)
	}

	page := debug.New(sup, debug.Config{Actions: true})
	mux := http.NewServeMux()
	mux.Handle("/debug/mcp/", page)
	server := &http.Server{Handler: mux}
	server.RegisterOnShutdown(page.Close)
	go server.Serve(listener)

	open, err := http.Get("http://" + listener.Addr().String() + "/debug/mcp/live") // what an open page requests
	if err != nil {
		log.Fatal(err)
	}
	defer open.Body.Close()
	line, err := bufio.NewReader(open.Body).ReadString('\n')
	if err != nil {
		log.Fatal(err)
	}
	fmt.Print(line)
	fmt.Println(server.Shutdown(ctx))
	// Output:
	// event: update
	// <nil>
}
