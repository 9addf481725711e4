package supervisor_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// A scope ends with the actor that owns it.
func ExampleConfig_owner() {
	ctx, system := context.Background(), newSystem()
	ended := make(chan *messages.OwnerTerminated, 1)
	system.EventStream.Subscribe(func(event any) {
		if e, ok := event.(*messages.OwnerTerminated); ok {
			ended <- e
		}
	})
	sup, err := supervisor.Start(system, supervisor.Config{Servers: []mcpbridge.Server{{Name: "desk", InMemory: newDesk()}}})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	owner := system.Root.Spawn(actor.PropsFromFunc(func(actor.Context) {}))
	if _, err := sup.Client().Do(ctx, &messages.Bind{Scope: "conversation-1", Owner: owner}); err != nil {
		log.Fatal(err)
	}
	go func() {
		<-waiting
		system.Root.Stop(owner)
	}()
	_, err = sup.Client().CallTool(ctx, "desk", "conversation-1", &mcp.CallToolParams{Name: "wait"})
	fmt.Println(err)
	e := <-ended
	fmt.Println(e.Scopes, e.Cancelled)
	// Output:
	// tools/call "wait" on desk/conversation-1: cancelled: its owner has terminated
	// [conversation-1] 1
}

// Asker is an actor whose call ends with it.
type Asker struct{ sup *supervisor.Supervisor }

func (a *Asker) Receive(c actor.Context) {
	if _, ok := c.Message().(*actor.Started); ok {
		header := messages.To("desk", "shared")
		header.Owner = c.Self()
		c.Request(a.sup.PID(), &messages.CallTool{Header: header, Params: &mcp.CallToolParams{Name: "wait"}})
	}
}

// A call ends with its asker.
func ExampleConfig_asker() {
	ctx, system := context.Background(), newSystem()
	sup, err := supervisor.Start(system, supervisor.Config{Servers: []mcpbridge.Server{{Name: "desk", InMemory: newDesk()}}})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	asker := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &Asker{sup} }))
	<-waiting
	system.Root.Stop(asker)
	fmt.Println("the tool was", <-left)
	// Output: the tool was cancelled
}

// Desk is an actor that shows questions to a person, and takes them back.
type Desk struct {
	open map[string]string // the questions on the screen
	done chan string
}

func (d *Desk) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case *messages.Elicit:
		d.open[msg.Question] = msg.Params.Message
		fmt.Println(msg.Operation.Target, "asks:", msg.Params.Message)
	case *messages.Withdrawn:
		delete(d.open, msg.Question)
		d.done <- fmt.Sprintf("%d open: %s", len(d.open), msg.Reason)
	}
}

// A question is withdrawn when its call ends, and goes to the handler of its scope.
func ExampleConfig_question() {
	ctx, system := context.Background(), newSystem()
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers:      []mcpbridge.Server{{Name: "clerk", InMemory: newClerk()}},
		Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{Form: &mcp.FormElicitationCapabilities{}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	done := make(chan string)
	desk := system.Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return &Desk{map[string]string{}, done} }))
	if _, err := sup.Client().Do(ctx, &messages.Bind{Scope: "conversation-1", Handler: desk}); err != nil {
		log.Fatal(err)
	}
	limited, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	go sup.Client().CallTool(limited, "clerk", "conversation-1", &mcp.CallToolParams{Name: "register"})
	fmt.Println(<-done)
	// Output:
	// register asks: Your name?
	// 0 open: the deadline of the operation has passed
}

// What the tool of newDesk does.
var waiting, left = make(chan struct{}, 1), make(chan string, 1)

// newDesk returns a server with a tool that waits until it is cancelled.
func newDesk() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "desk", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		select { // one example leaves what it does not read
		case <-left:
		default:
		}
		waiting <- struct{}{}
		<-ctx.Done()
		left <- "cancelled"
		return nil, nil, ctx.Err()
	})
	return server
}
