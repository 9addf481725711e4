package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// Plain Go code uses a client.
func Example_client() {
	ctx := context.Background()
	system := actor.NewActorSystem()
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers: []supervisor.Server{
			{Name: "greeter", InMemory: newGreeter()},
			{Name: "browser", Command: "npx", Args: []string{"@playwright/mcp"}},
			{Name: "search", URL: "https://search.example.com/mcp"},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)

	reply, err := sup.Client().CallTool(ctx, "greeter", "conversation-1", &mcp.CallToolParams{
		Name:      "greet",
		Arguments: map[string]any{"name": "Ada"},
	})
	if failure, ok := errors.AsType[*messages.Failure](err); ok && failure.MayHaveRun {
		log.Fatal("the call may have run: ", err)
	} else if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Result.Content[0].(*mcp.TextContent).Text)
	// Output: Hello, Ada!
}

// Greeter is an agent. It sends a call, and receives the answer as a message.
type Greeter struct {
	sessions *actor.PID // sup.PID()
	done     chan string
}

func (g *Greeter) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case *actor.Started:
		c.Request(g.sessions, &messages.CallTool{
			Header: messages.To("greeter", "conversation-1"),
			Params: &mcp.CallToolParams{Name: "greet", Arguments: map[string]any{"name": "Ada"}},
		})
	case *messages.ToolResult:
		g.done <- msg.Result.Content[0].(*mcp.TextContent).Text
	case *messages.Failure:
		g.done <- msg.Error() // see msg.Code and msg.MayHaveRun
	}
}

// An actor sends a message, and gets one reply.
func Example_actor() {
	system := newSystem()
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers: []supervisor.Server{{Name: "greeter", InMemory: newGreeter()}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(context.Background())

	greeter := &Greeter{sessions: sup.PID(), done: make(chan string)}
	system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return greeter }))
	fmt.Println(<-greeter.done)
	// Output: Hello, Ada!
}

// Events tell what becomes of sessions.
func Example_events() {
	system := newSystem()
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers: []supervisor.Server{{Name: "greeter", InMemory: newGreeter()}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(context.Background())

	opened := make(chan string, 1)
	unsubscribe := sup.Subscribe(func(event messages.Event) {
		if e, ok := event.(*messages.SessionOpened); ok {
			opened <- fmt.Sprintf("%s opened, generation %d", e.Key, e.Generation)
		}
	})
	defer unsubscribe()

	if _, err := sup.Client().Open(context.Background(), "greeter", "a"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-opened)
	// Output: greeter/a opened, generation 1
}

// newGreeter returns a server for the examples.
func newGreeter() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	type args struct {
		Name string `json:"name"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(_ context.Context, _ *mcp.CallToolRequest, in args) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Hello, " + in.Name + "!"}}}, nil, nil
	})
	return server
}

// newSystem returns an actor system that does not log.
func newSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}))
}
