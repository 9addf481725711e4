package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// Each conversation has a directory of its own, in which its process works.
func ExampleConfig_workspacePerConversation() {
	const root = "/var/lib/agent/workspaces"
	files := mcpbridge.Server{Name: "files", Command: "files-server", Args: []string{"--allow", "."}}
	server := files
	server.PerKey = func(_ context.Context, key messages.Key) (mcpbridge.Server, error) {
		if !filepath.IsLocal(key.Scope) || filepath.Base(key.Scope) != key.Scope {
			return mcpbridge.Server{}, fmt.Errorf("the scope is not the name of a directory")
		}
		one := files
		one.Dir = filepath.Join(root, key.Scope)
		return one, os.MkdirAll(one.Dir, 0o700)
	}
	sup, err := supervisor.Start(newSystem(), supervisor.Config{Servers: []mcpbridge.Server{server}})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(context.Background())
	_, err = sup.Client().CallTool(context.Background(), "files", "../secrets", &mcp.CallToolParams{Name: "list"})
	fmt.Println(detailOf(err))
	// Output: no configuration for this key: the scope is not the name of a directory
}

// detailOf returns the cause of a failure.
func detailOf(err error) string {
	var failure *messages.Failure
	errors.As(err, &failure)
	return failure.Detail
}

// tokens has the tokens of the users.
type tokens map[string]string

func (t tokens) of(_ context.Context, user string) (string, error) {
	if t[user] == "" {
		return "", fmt.Errorf("there is no such user")
	}
	return t[user], nil
}

// Each user has a token of their own.
func ExampleConfig_tokenPerUser() {
	vault := tokens{"ann": "token-of-ann"}
	search := mcpbridge.Server{Name: "search", URL: "https://search.example.com/mcp"}
	server := search
	server.PerKey = func(ctx context.Context, key messages.Key) (mcpbridge.Server, error) {
		token, err := vault.of(ctx, key.Scope)
		if err != nil {
			return mcpbridge.Server{}, err
		}
		one := search
		one.Headers = map[string]string{"Authorization": "Bearer " + token}
		return one, nil
	}
	sup, err := supervisor.Start(newSystem(), supervisor.Config{Servers: []mcpbridge.Server{server}})
	if err != nil {
		log.Fatal(err)
	}
	defer sup.Stop(context.Background())
	_, err = sup.Client().CallTool(context.Background(), "search", "bob", &mcp.CallToolParams{Name: "find"})
	fmt.Println(detailOf(err))
	// Output: no configuration for this key: there is no such user
}
