package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// One server has bounds and timeouts of its own. The other one has those of the supervisor.
func ExampleLimits() {
	system := newSystem()
	sup, err := supervisor.Start(system, supervisor.Config{
		CallTimeout: 30 * time.Second,
		Servers: []supervisor.Server{
			{Name: "greeter", InMemory: newGreeter()},
			{Name: "browser", Command: "browser-mcp", Limits: supervisor.Limits{
				MaxSessions: 8,               // each one is a browser, which takes memory
				MaxDials:    2,               // and time to start
				CallTimeout: 5 * time.Minute, // pages may be slow
				IdleTimeout: 2 * time.Minute,
			}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(context.Background())
	// Output:
}

// Calls beyond a bound are not sent.
func ExampleBound() {
	ctx, server := context.Background(), supervisor.Server{Name: "greeter", InMemory: newGreeter()}
	server.Limits.Bounds = []supervisor.Bound{
		{PerMinute: 60, Total: 1000}, // each scope: 60 calls at once, then one a second, and 1,000 in all
		{Tool: "gre*", PerMinute: 1}, // these tools together, in each scope
		{Shared: true, InFlight: 20}, // all scopes together: without a reply at one time
	}
	sup, err := supervisor.Start(newSystem(), supervisor.Config{Servers: []supervisor.Server{server}})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)

	for range 2 {
		_, err := sup.Client().CallTool(ctx, "greeter", "a", &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"name": "Ada"}})
		var failure *messages.Failure
		if errors.As(err, &failure) {
			fmt.Println(failure.Code, failure.RetryAfter.Round(time.Second))
		}
	}
	// Output:
	// rate_limited 1m0s
}

// A tenant that opens many sessions evicts its own ones, and none of others.
func ExampleScopePrefix() {
	ctx, system := context.Background(), newSystem()
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers:              []supervisor.Server{{Name: "greeter", InMemory: newGreeter()}},
		MaxSessions:          100,
		Tenant:               supervisor.ScopePrefix("/"), // the tenant of the scope "acme/42" is "acme"
		MaxSessionsPerTenant: 2,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	evicted := make(chan *messages.SessionEvicted, 10)
	system.EventStream.Subscribe(func(event any) {
		if e, ok := event.(*messages.SessionEvicted); ok {
			evicted <- e
		}
	})

	for _, scope := range []string{"quiet/1", "acme/1", "acme/2", "acme/3"} {
		if _, err := sup.Client().CallTool(ctx, "greeter", scope, &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"name": "Ada"}}); err != nil {
			log.Fatal(err)
		}
	}
	e := <-evicted
	fmt.Println(e.Key.Scope, e.Reason)
	// Output: acme/1 tenant-quota
}

// A pinned session stays open, however many others are opened.
func ExampleClient_Pin() {
	ctx, system := context.Background(), newSystem()
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers:     []supervisor.Server{{Name: "greeter", InMemory: newGreeter()}},
		MaxSessions: 2,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	client := sup.Client()
	if _, err := client.Pin(ctx, "greeter", "long-running"); err != nil {
		log.Fatal(err)
	}
	for _, scope := range []string{"long-running", "a", "b", "c", "long-running"} {
		result, err := client.CallTool(ctx, "greeter", scope, &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"name": "Ada"}})
		if err != nil {
			log.Fatal(err)
		}
		if scope == "long-running" {
			fmt.Println("generation", result.Generation)
		}
	}
	if _, err := client.Unpin(ctx, "greeter", "long-running"); err != nil {
		log.Fatal(err)
	}
	// Output:
	// generation 1
	// generation 1
}
