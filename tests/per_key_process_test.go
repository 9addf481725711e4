package tests

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// describeVar is an environment variable with which this test binary runs runDescribing.
const describeVar = "MCPACTOR_TEST_DESCRIBE"

// description is how a process was started.
type description struct {
	Args  []string `json:"args"`
	Token string   `json:"token"`
	Dir   string   `json:"dir"`
}

// runDescribing is a stdio server with the tool "describe", which returns how the process was
// started.
func runDescribing() {
	if os.Getenv(describeVar) == "broken" {
		fmt.Fprintln(os.Stderr, "no license for", os.Getenv("TOKEN"))
		os.Exit(3)
	}
	if owner := os.Getenv("OWNER"); owner != "" {
		exitOnError(ownedServer(owner).Run(context.Background(), &mcp.StdioTransport{}))
		os.Exit(0)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "describing", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "describe"}, func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
		dir, err := os.Getwd()
		if err != nil {
			return nil, nil, err
		}
		text, err := json.Marshal(description{os.Args[1:], os.Getenv("TOKEN"), dir})
		if err != nil {
			return nil, nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(text)}}}, nil, nil
	})
	exitOnError(server.Run(context.Background(), &mcp.StdioTransport{}))
	os.Exit(0)
}

// describing returns the configuration of that server.
func describing(t *testing.T) mcpbridge.Server {
	exe, err := os.Executable()
	require.NoError(t, err)
	return mcpbridge.Server{Name: "s", Command: exe, Env: map[string]string{describeVar: "1", "GORACE": "atexit_sleep_ms=0"}}
}

// described returns how the process of a scope was started.
func (h *harness) described(scope string) (d description) {
	h.t.Helper()
	require.NoError(h.t, json.Unmarshal([]byte(h.send(call(scope, "describe")).text()), &d))
	return d
}

func TestProcessOfEachKeyHasItsOwnArgumentsEnvironmentAndDirectory(t *testing.T) {
	root := t.TempDir()
	base := describing(t)
	srv := base
	srv.PerKey = func(_ context.Context, key messages.Key) (mcpbridge.Server, error) {
		one := base
		one.Dir = filepath.Join(root, key.Scope)
		if err := os.MkdirAll(one.Dir, 0o700); err != nil {
			return one, err
		}
		one.Args = []string{"--user", key.Scope, "$(touch " + root + "/pwned); `id`"}
		one.Env = map[string]string{describeVar: "1", "GORACE": "atexit_sleep_ms=0", "TOKEN": "token-of-" + key.Scope}
		if key.Scope == "broken" {
			one.Env[describeVar] = "broken"
		}
		return one, nil
	}
	before := resourcesInUse()
	h := start(t, supervisor.Config{Servers: []mcpbridge.Server{srv}})
	defer h.stop()
	broken := h.send(call("broken", "describe", within(10*time.Second)))
	for range 2 {
		for _, scope := range []string{"ann", "bob; rm -rf x"} {
			d := h.described(scope)
			dir, err := filepath.EvalSymlinks(filepath.Join(root, scope))
			require.NoError(t, err)
			require.Equal(t, description{[]string{"--user", scope, "$(touch " + root + "/pwned); `id`"}, "token-of-" + scope, dir}, d)
		}
	}
	require.NoFileExists(t, filepath.Join(root, "pwned"))
	f := broken.fails(messages.CodeUnavailable)
	require.Contains(t, f.Error(), "no license for")
	require.NotContains(t, f.Error(), "token-of-broken")
	h.stopAndVerify()
	before.verify(t)
}
