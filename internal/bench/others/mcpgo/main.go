// Command mcpgo measures the client of github.com/mark3labs/mcp-go. It reads lines of
// JSON that say how many calls to make, makes them on one session, and writes how long
// they took.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: mcpgo URL")
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetOutput(os.Stderr) // which SetDefault has changed
	if err := run(context.Background(), os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// run makes calls until stdin ends.
func run(ctx context.Context, url string) error {
	connections := http.DefaultTransport.(*http.Transport).Clone()
	connections.MaxIdleConnsPerHost, connections.MaxIdleConns = 256, 0
	c, err := client.NewStreamableHttpClient(url,
		transport.WithHTTPBasicClient(&http.Client{Transport: connections}),
		transport.WithContinuousListening(), // the other clients have a stream as well
	)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Start(ctx); err != nil {
		return err
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = "2025-11-25" // the newest protocol that has sessions over HTTP
	hello.Params.ClientInfo = mcp.Implementation{Name: "bench", Version: "1"}
	if _, err := c.Initialize(ctx, hello); err != nil {
		return err
	}
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for in.More() {
		var order struct{ Calls, Callers int }
		if err := in.Decode(&order); err != nil {
			return err
		}
		began := time.Now()
		latencies := makeCalls(ctx, c, order.Calls, order.Callers)
		took := map[string]any{"ns": time.Since(began), "p50": latencies[order.Calls/2]}
		if err := out.Encode(took); err != nil {
			return err
		}
	}
	return nil
}

// makeCalls returns the latencies of calls, in ascending order. It ends the program if
// one fails.
func makeCalls(ctx context.Context, c *client.Client, calls, callers int) []time.Duration {
	latencies := make([]time.Duration, calls)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(calls); i = next.Add(1) - 1 {
				began := time.Now()
				var req mcp.CallToolRequest
				req.Params.Name, req.Params.Arguments = "echo", map[string]any{"text": "hello"}
				result, err := c.CallTool(ctx, req)
				if err == nil && (result.IsError || len(result.Content) != 1) {
					err = fmt.Errorf("unexpected result %v", result)
				}
				if err != nil {
					log.Fatal(err)
				}
				latencies[i] = time.Since(began)
			}
		})
	}
	wg.Wait()
	slices.Sort(latencies)
	return latencies
}
