package supervisor_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"

	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// Sessions are closed by key, and by a pattern for their scopes. All calls of a scope can
// be cancelled.
func ExampleClient_CloseMatching() {
	ctx := context.Background()
	sup, err := supervisor.Start(newSystem(), supervisor.Config{
		Servers: []supervisor.Server{{Name: "greeter", InMemory: newGreeter()}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	client := sup.Client()
	for _, scope := range []string{"acme/1", "acme/2", "acme/3", "zoo/1"} {
		if _, err := client.Open(ctx, "greeter", scope); err != nil {
			log.Fatal(err)
		}
	}

	if err := client.CancelScope(ctx, "acme/1"); err != nil {
		log.Fatal(err)
	}
	closed, err := client.CloseSession(ctx, "greeter", "acme/1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(closed.Sessions)
	closed, err = client.CloseMatching(ctx, "acme/*")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(closed.Sessions)
	sup.Client().Do(ctx, &messages.CloseMatching{Scopes: "acme/*", Now: true}) // a tenant has left
	// Output:
	// 1
	// 2
}

// A restart gives a key a new MCP session.
func ExampleClient_Restart() {
	ctx := context.Background()
	sup, err := supervisor.Start(newSystem(), supervisor.Config{
		Servers: []supervisor.Server{{Name: "greeter", InMemory: newGreeter()}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	client := sup.Client()
	if _, err := client.Open(ctx, "greeter", "a"); err != nil {
		log.Fatal(err)
	}

	if err := client.Restart(ctx, "greeter", "a"); err != nil {
		log.Fatal(err)
	}
	pong, err := client.Ping(ctx, "greeter", "a")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("generation", pong.Generation)
	// Output: generation 2
}

// Inspect lists the configured servers. Forget resets what is known of one.
func ExampleClient_Forget() {
	ctx := context.Background()
	sup, err := supervisor.Start(newSystem(), supervisor.Config{
		Servers: []supervisor.Server{
			{Name: "greeter", InMemory: newGreeter()},
			{Name: "search", URL: "https://search.example.com/mcp"},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	client := sup.Client()
	if _, err := client.Open(ctx, "greeter", "a"); err != nil {
		log.Fatal(err)
	}

	snap, err := client.Inspect(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, server := range snap.Servers {
		fmt.Println(server.Name, server.Health, server.States[messages.StateReady])
	}
	if err := client.Forget(ctx, "greeter"); err != nil {
		log.Fatal(err)
	}
	// Output:
	// greeter up 1
	// search unknown 0
}

// The lines that a server writes to stderr go to a log.
func ExampleServer_stderr() {
	logger := zerolog.New(os.Stderr)
	sup, err := supervisor.Start(newSystem(), supervisor.Config{
		Servers: []supervisor.Server{{
			Name: "browser", Command: "npx", Args: []string{"@playwright/mcp"},
			Stderr: func(key messages.Key) io.Writer { return logger.With().Stringer("session", key).Logger() },
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(context.Background())
}
