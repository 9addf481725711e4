package supervisor_test

import (
	"context"
	"fmt"
	"log"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// User is an actor that answers the requests of servers.
type User struct{}

func (u *User) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case *messages.Elicit:
		// An actor that asks a person keeps c.Sender(), and sends it the answer later.
		c.Respond(&messages.Elicited{Result: u.ask(msg.Key.Scope, msg.Params.Message)})
	case messages.Request:
		c.Respond(&messages.Refusal{Reason: "this agent offers no model"})
	}
}

// ask asks the person of a conversation.
func (u *User) ask(_, _ string) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": "Ada"}}
}

// A server asks something while a tool runs, and an actor answers.
func ExampleConfig_handler() {
	ctx, system := context.Background(), newSystem()
	user := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &User{} }))
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers: []mcpbridge.Server{{Name: "clerk", InMemory: newClerk()}},
		Handler: user,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	reply, err := sup.Client().CallTool(ctx, "clerk", "conversation-1", &mcp.CallToolParams{Name: "register"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.Result.Content[0].(*mcp.TextContent).Text)
	// Output: Registered Ada.
}

// A call tells of its progress.
func ExampleWithProgress() {
	ctx, system := context.Background(), newSystem()
	sup, err := supervisor.Start(system, supervisor.Config{Servers: []mcpbridge.Server{{Name: "clerk", InMemory: newClerk()}}})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	ctx = supervisor.WithProgress(ctx, func(p *messages.Progress) {
		fmt.Printf("%v of %v: %s\n", p.Progress, p.Total, p.Message)
	})
	if _, err := sup.Client().CallTool(ctx, "clerk", "conversation-1", &mcp.CallToolParams{Name: "file"}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// 1 of 2: looking for the drawer
	// 2 of 2: putting it in
}

// An actor is told when a resource changes.
func ExampleConfig_subscriber() {
	ctx, system := context.Background(), newSystem()
	changed := make(chan string)
	reader := system.Root.Spawn(actor.PropsFromFunc(func(c actor.Context) {
		if msg, ok := c.Message().(*messages.ResourceUpdated); ok {
			changed <- msg.URI
		}
	}))
	sup, err := supervisor.Start(system, supervisor.Config{Servers: []mcpbridge.Server{{Name: "clerk", InMemory: newClerk()}}})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	header := messages.To("clerk", "conversation-1")
	header.Subscriber = reader
	if _, err := sup.Client().Do(ctx, &messages.Subscribe{Header: header, URI: "file:///register"}); err != nil {
		log.Fatal(err)
	}
	if _, err := sup.Client().CallTool(ctx, "clerk", "conversation-1", &mcp.CallToolParams{Name: "file"}); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-changed, "has changed")
	// Output: file:///register has changed
}

// newClerk returns a server for the examples.
func newClerk() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "clerk", Version: "1"}, &mcp.ServerOptions{
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		Capabilities:       &mcp.ServerCapabilities{Resources: &mcp.ResourceCapabilities{Subscribe: true}},
	})
	text := func(text string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}
	}
	mcp.AddTool(server, &mcp.Tool{Name: "register"}, func(_ context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		answer, ok := req.Params.InputResponses["name"].(*mcp.ElicitResult)
		if !ok {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"name": &mcp.ElicitParams{Message: "Your name?"}}}, nil, nil
		}
		return text(fmt.Sprintf("Registered %v.", answer.Content["name"])), nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "file"}, func(ctx context.Context, req *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		for i, step := range []string{"looking for the drawer", "putting it in"} {
			if token := req.Params.GetProgressToken(); token != nil {
				err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(i + 1), Total: 2, Message: step})
				if err != nil {
					return nil, nil, err
				}
			}
		}
		return text("filed"), nil, server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "file:///register"})
	})
	return server
}
