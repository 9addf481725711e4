package toolset_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"log/slog"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// A model is offered tools, and calls one.
func Example() {
	ctx := context.Background()
	system := newSystem()
	sup, err := supervisor.Start(system, supervisor.Config{
		Servers: []mcpbridge.Server{
			{Name: "files", InMemory: newFiles()},
			{Name: "search", InMemory: newSearch()},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)

	tools, err := toolset.New(system, sup, toolset.Config{
		Scope: "conversation-1",
		Servers: []toolset.Filter{
			{Name: "files", Allow: []string{"read*", "list"}, Deny: []string{"read_secret"}},
			{Name: "search", DisplayName: "Web search", Metadata: map[string]any{"folder_path": "/shared"}},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer tools.Close()

	set, err := tools.Tools(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, missing := range set.Missing {
		log.Print("continuing without ", missing.Key.Server, ": ", missing)
	}
	for _, tool := range set.Tools {
		fmt.Println(tool.Name, "-", tool.Metadata["display_name"])
	}

	request, err := json.Marshal(map[string]any{
		"tools": set.Anthropic(), // or OpenAIChat, or OpenAIResponses
	})
	if err != nil {
		log.Fatal(err)
	}
	name, input := askModel(request)

	result, err := tools.Call(ctx, name, input)
	output := tools.Outcome(result, err) // a failure as well is told to the model
	block, err := json.Marshal(map[string]any{
		"type":        "tool_result",
		"tool_use_id": "toolu_1",
		"content":     output.Anthropic(),
		"is_error":    output.IsError,
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(block))
	// Output:
	// files__read - Read a file
	// search__find - Web search
	// {"content":[{"type":"text","text":"Buy milk."}],"is_error":false,"tool_use_id":"toolu_1","type":"tool_result"}
}

// Agent is an actor that runs a model.
type Agent struct {
	tools *actor.PID // Toolset.PID()
	done  chan string
}

func (a *Agent) Receive(c actor.Context) {
	switch msg := c.Message().(type) {
	case *actor.Started: // the model wants to call a tool
		c.Request(a.tools, &toolset.Use{ID: "toolu_1", Name: "files__read", Arguments: `{"path": "notes.txt"}`})
	case *toolset.Told: // a result or a failure, for the model
		a.done <- msg.ID + ": " + msg.Output.Text()
	}
}

// An actor sends a Use, and gets what the model is told.
func Example_actor() {
	ctx := context.Background()
	sup, err := supervisor.Start(nil, supervisor.Config{
		Servers: []mcpbridge.Server{{Name: "files", InMemory: newFiles()}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(ctx)
	tools, err := toolset.New(nil, sup, toolset.Config{Servers: []toolset.Filter{{Name: "files"}}})
	if err != nil {
		log.Fatal(err)
	}
	defer tools.Close()

	agent := &Agent{tools: tools.PID(), done: make(chan string)}
	sup.System().Root.Spawn(actor.PropsFromProducer(func() actor.Actor { return agent }))
	fmt.Println(<-agent.done)
	// Output: toolu_1: Buy milk.
}

// askModel stands for a request to a model, which wants to call a tool.
func askModel([]byte) (name string, input json.RawMessage) {
	return "files__read", json.RawMessage(`{"path": "notes.txt"}`)
}

// newFiles returns a server for the examples.
func newFiles() *mcp.Server {
	type args struct {
		Path string `json:"path"`
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "files", Version: "1"}, nil)
	read := func(context.Context, *mcp.CallToolRequest, args) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "Buy milk."}}}, nil, nil
	}
	mcp.AddTool(server, &mcp.Tool{Name: "read", Title: "Read a file"}, read)
	mcp.AddTool(server, &mcp.Tool{Name: "read_secret"}, read)
	mcp.AddTool(server, &mcp.Tool{Name: "delete"}, read)
	return server
}

// newSearch returns a server for the examples.
func newSearch() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "search", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "find"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
	return server
}

// newSystem returns an actor system that does not log.
func newSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}))
}
