// Command mcpgo is the client of github.com/mark3labs/mcp-go, as demo bench measures
// it: it reads how many calls to make, as a line of JSON, makes them on one session,
// and writes how long they took.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
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
		fmt.Fprintln(os.Stderr, "usage: mcpgo URL")
		os.Exit(2)
	}
	slog.SetDefault(slog.New(slog.DiscardHandler))
	if err := run(context.Background(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "mcpgo:", err)
		os.Exit(1)
	}
}

// order is a line that is read, taken one that is written, in nanoseconds.
type (
	order struct {
		Calls   int `json:"calls"`
		Callers int `json:"callers"`
	}
	taken struct {
		NS    int64  `json:"ns"`
		P50   int64  `json:"p50"`
		P99   int64  `json:"p99"`
		Error string `json:"error,omitempty"`
	}
)

// run serves orders until stdin ends.
func run(ctx context.Context, url string) error {
	connections := http.DefaultTransport.(*http.Transport).Clone()
	connections.MaxIdleConnsPerHost, connections.MaxIdleConns = 256, 0
	c, err := client.NewStreamableHttpClient(url,
		transport.WithHTTPBasicClient(&http.Client{Transport: connections}),
		transport.WithContinuousListening(), // the stream that the other clients have
	)
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.Start(ctx); err != nil {
		return err
	}
	var hello mcp.InitializeRequest
	hello.Params.ProtocolVersion = "2025-11-25" // over HTTP the newer one has no sessions
	hello.Params.ClientInfo = mcp.Implementation{Name: "bench", Version: "1"}
	if _, err := c.Initialize(ctx, hello); err != nil {
		return err
	}
	out := json.NewEncoder(os.Stdout)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var o order
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return err
		}
		if err := out.Encode(o.carryOut(func() error { return call(ctx, c) })); err != nil {
			return err
		}
	}
	return nil
}

func call(ctx context.Context, c *client.Client) error {
	var req mcp.CallToolRequest
	req.Params.Name = "echo"
	req.Params.Arguments = map[string]any{"text": "hello"}
	result, err := c.CallTool(ctx, req)
	if err == nil && (result.IsError || len(result.Content) != 1) {
		err = fmt.Errorf("the result is %v", result)
	}
	return err
}

// carryOut makes the calls.
func (o order) carryOut(call func() error) taken {
	latencies := make([]int64, o.Calls)
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	began := time.Now()
	for range o.Callers {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(o.Calls) && failed.Load() == nil; i = next.Add(1) - 1 {
				at := time.Now()
				if err := call(); err != nil {
					failed.Store(&err)
				}
				latencies[i] = int64(time.Since(at))
			}
		})
	}
	wg.Wait()
	t := taken{NS: int64(time.Since(began))}
	if err := failed.Load(); err != nil {
		t.Error = (*err).Error()
	}
	if slices.Sort(latencies); o.Calls > 0 {
		t.P50, t.P99 = latencies[o.Calls/2], latencies[o.Calls*99/100]
	}
	return t
}
