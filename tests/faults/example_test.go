package faults_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/tests/faults"
)

// Test your own agent with faults: the agent in this example buys something with each
// call.
func Example() {
	tools := faults.NewTools()
	server, _ := faults.Serve(tools.Handler)
	defer tools.Close()
	defer server.Close()
	sup, _ := supervisor.Start(actor.NewActorSystem(), supervisor.Config{
		Servers: []mcpbridge.Server{{Name: "shop", URL: server.URL()}},
	})
	defer sup.Stop(context.Background())
	buy := func(what string) error {
		params := &mcp.CallToolParams{Name: "count", Arguments: map[string]any{"call": what}}
		_, err := sup.Client().CallTool(context.Background(), "shop", "alice", params)
		return err
	}

	fmt.Println("book:", buy("book"))
	server.Expire(faults.Expiries()[0])
	fmt.Println("lamp:", buy("lamp"))
	server.Inject("tools/call", faults.Times(1, faults.CutAnswer(0)))
	fmt.Println("sofa lost:", errors.Is(buy("sofa"), messages.CodeLost))
	fmt.Println(tools.Executions())
	// Output:
	// book: <nil>
	// lamp: <nil>
	// sofa lost: true
	// map[book:1 lamp:1 sofa:1]
}

// agent is the program under test in the other examples. It calls the tools of one
// server, through a supervisor.
type agent struct{ sup *supervisor.Supervisor }

func newAgent(server mcpbridge.Server, cfg supervisor.Config) *agent {
	server.Name = "s"
	cfg.Servers = []mcpbridge.Server{server}
	sup, err := supervisor.Start(actor.NewActorSystem(), cfg)
	if err != nil {
		panic(err)
	}
	return &agent{sup}
}

func (a *agent) stop() { a.sup.Stop(context.Background()) }

// call calls a tool, and returns its result or the code of the failure.
func (a *agent) call(tool, name string) string { return a.callIn("default", tool, name) }

func (a *agent) callIn(scope, tool, name string) string {
	params := &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"call": name, "scope": scope}}
	reply, err := a.sup.Client().CallTool(context.Background(), "s", scope, params)
	var failure *messages.Failure
	switch {
	case errors.As(err, &failure) && failure.MayHaveRun:
		return string(failure.Code) + ", may have run"
	case errors.As(err, &failure):
		return string(failure.Code)
	}
	return reply.Result.Content[0].(*mcp.TextContent).Text
}

// shop is a server with faults in front of [faults.Tools], and an agent that uses it.
type shop struct {
	*faults.Server
	*agent
	tools *faults.Tools
}

func open(cfg supervisor.Config) *shop {
	tools := faults.NewTools()
	server, err := faults.Serve(tools.Handler)
	if err != nil {
		panic(err)
	}
	return &shop{server, newAgent(mcpbridge.Server{URL: server.URL()}, cfg), tools}
}

func (s *shop) close() {
	s.stop()
	s.Server.Close()
	s.tools.Close()
}
