package toolset_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// A run is suspended until a person has answered, in this process or in a later one.
func ExampleToolset_Answer() {
	ctx := context.Background()
	_, sup := newOffice("notes") // with a CallStore, the call waits also for a later process
	defer sup.Stop(ctx)

	tools, err := toolset.New(nil, sup, toolset.Config{
		Scope: "conversation-1", Servers: []toolset.Filter{{Name: "notes"}},
		Policy: &toolset.Policy{Decide: func(toolset.Proposal) toolset.Decision {
			return toolset.Decision{Verdict: toolset.Defer}
		}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer tools.Close()

	_, err = tools.Call(ctx, "notes__read", `{"path": "plan.txt"}`)
	pending, waits := errors.AsType[*toolset.Pending](err)
	if !waits {
		log.Fatal(err)
	}
	fmt.Println("asked:", pending.Tool, string(pending.Arguments))

	// Suspend the run, and keep pending.ID and pending.Digest. When the person has answered, resume it:
	result, err := tools.Answer(ctx, pending.ID, pending.Digest, toolset.Decision{Verdict: toolset.Allow})
	fmt.Println(tools.Outcome(result, err).Text())
	// Output:
	// asked: read {"path": "plan.txt"}
	// Done.
}

// A server for the web has a toolset for each conversation that has been used lately.
func ExamplePool() {
	ctx := context.Background()
	_, sup := newOffice("memory", "browser")
	defer sup.Stop(ctx)

	pool, err := toolset.NewPool(nil, sup, toolset.PoolConfig{Config: func(string) toolset.Config {
		return toolset.Config{Servers: []toolset.Filter{{Name: "memory", Scope: "shared"}, {Name: "*"}}}
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()

	for _, conversation := range []string{"conversation-1", "conversation-2", "conversation-1"} {
		tools, err := pool.Get(conversation)
		if err != nil {
			log.Fatal(err)
		}
		result, err := tools.Call(ctx, "browser__read", nil)
		fmt.Println(conversation+":", tools.Outcome(result, err).Text())
	}
	if _, err := pool.Bind("conversation-3", sup.PID()); err != nil { // an actor, with whose end the toolset ends
		log.Fatal(err)
	}
	pool.Remove("conversation-1")
	// Output:
	// conversation-1: Done.
	// conversation-2: Done.
	// conversation-1: Done.
}

// A model gets the beginning and the end of a long result, and reads the rest with a tool.
func ExampleReadTool() {
	ctx := context.Background()
	server := mcp.NewServer(&mcp.Implementation{Name: "logs", Version: "1"}, nil)
	server.AddTool(&mcp.Tool{Name: "tail", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: strings.Repeat("a line of a log\n", 100_000) + "out of memory"}}}, nil
	})
	sup, err := supervisor.Start(nil, supervisor.Config{Servers: []mcpbridge.Server{{Name: "logs", InMemory: server}}})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	tools, err := toolset.New(nil, sup, toolset.Config{Servers: []toolset.Filter{{Name: "logs"}}, MaxText: 10_000})
	if err != nil {
		log.Fatal(err)
	}
	defer tools.Close()

	result, err := tools.Call(ctx, "logs__tail", nil)
	text := tools.Outcome(result, err).Text()
	fmt.Println(len(text) <= 10_000, strings.HasSuffix(text, "out of memory"), strings.Contains(text, "bytes are left out here"))
	set, err := tools.Tools(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(set.Tools[1].Name) // the model calls it as any other tool
	// Output:
	// true true true
	// read_result
}

// An actor sends a Use with a trace, and cancels it with its id.
func ExampleUse() {
	ctx := context.Background()
	system, sup := newOffice("notes")
	defer sup.Stop(ctx)
	tools, err := toolset.New(system, sup, toolset.Config{Servers: []toolset.Filter{{Name: "notes"}}, Policy: &toolset.Policy{
		Ask: func(ctx context.Context, _ toolset.Proposal) (toolset.Decision, error) {
			<-ctx.Done() // the person never answers
			return toolset.Decision{}, ctx.Err()
		},
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer tools.Close()

	use := &toolset.Use{ID: "toolu_1", Name: "notes__read", Header: messages.Header{
		Trace: messages.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	}}
	future := system.Root.RequestFuture(tools.PID(), use, -1)
	system.Root.Send(tools.PID(), &messages.Cancel{ID: "toolu_1"})
	reply, err := future.Result()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(reply.(*toolset.Told).Output.Text())
	// Output:
	// [tool error]
	// The call was cancelled. The tool did not run. Do not try again unless the user asks for it.
}
