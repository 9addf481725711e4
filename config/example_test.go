package config_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// A program reads its servers from a file of VS Code, and the inputs from its own
// environment.
func Example() {
	system := newSystem()
	loader := config.Loader{
		LookupEnv: lookup, // defaults to os.LookupEnv
		Input: func(in config.Input) (string, bool) {
			if in.ID == "issues-key" {
				return lookup("ISSUES_KEY")
			}
			return "", false // the servers that need it are left out
		},
	}
	file, err := loader.Load("testdata/.vscode/mcp.json")
	if err != nil {
		log.Fatal(err) // each error is on a line of its own, with its place in the file
	}
	for _, warning := range file.Warnings {
		fmt.Println(warning)
	}

	sup, err := supervisor.Start(system, file.Supervisor)
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(context.Background())

	tools, err := toolset.New(system, sup, toolset.Config{Scope: "conversation-1", Servers: file.Tools})
	if err != nil {
		log.Fatal(err)
	}
	defer tools.Close()

	for _, server := range file.Supervisor.Servers {
		fmt.Println(server.Name, server.Command+server.URL)
	}
	// Output:
	// testdata/.vscode/mcp.json:18: servers.docs.sandboxEnabled: has no effect
	// testdata/.vscode/mcp.json:19: servers.docs.dev: has no effect
	// docs node
	// issues https://issues.example.com/mcp
	// legacy http://127.0.0.1:3001/sse
}

func newSystem() *actor.ActorSystem {
	return actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.NewTextHandler(io.Discard, nil))
	}))
}

func lookup(name string) (string, bool) {
	if name == "ISSUES_KEY" {
		return "not-a-real-key", true
	}
	return os.LookupEnv(name)
}
