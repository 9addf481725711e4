package batch

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

func TestMain(m *testing.M) {
	os.Setenv("XDG_CONFIG_HOME", filepath.Join(os.TempDir(), "mcpactor-without-logins")) // one of the user may be for the port of a test
	if os.Getenv("BATCH_TEST_SERVER") != "" {                                            // the test binary is a stdio server
		newTools("a").Run(context.Background(), &mcp.StdioTransport{})
		return
	}
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"))
}

// run runs exec or tools as a program does, and returns the exit status.
func run(args []string, in io.Reader, out, log io.Writer) (status int) {
	program := &cli.Program{Name: "mcpactor", In: in, Out: out, Err: log}
	return program.Run(&struct {
		Exec   Exec   `cmd:""`
		Tools  Tools  `cmd:""`
		Call   Call   `cmd:""`
		Doctor Doctor `cmd:""`
	}{}, args)
}

// newTools returns a server with tools. Each reports progress, and returns its own name: after
// a second if the name begins with "slow".
func newTools(names ...string) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	for _, name := range names {
		addTool(server, &mcp.Tool{Name: name, Title: "Title of " + name})
	}
	return server
}

func addTool(server *mcp.Server, tool *mcp.Tool) {
	mcp.AddTool(server, tool, func(ctx context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		if token := req.Params.GetProgressToken(); token != nil {
			for i := range 3 {
				err := req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(i), Total: 3, Message: "at it"})
				if err != nil {
					return nil, nil, err
				}
			}
		}
		if strings.HasPrefix(tool.Name, "slow") {
			time.Sleep(time.Second) // synctest
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: tool.Name}}}, nil, nil
	})
}

// inMemory runs a scenario in fake time, with servers in memory.
func inMemory(t *testing.T, servers map[string]*mcp.Server, scenario func(t *testing.T, i *instance, tools *toolsets)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var cfg supervisor.Config
		i := &instance{File: &config.File{}, system: actor.NewActorSystem(supervisor.WithSystemLogger(zerolog.Nop()))}
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			cfg.Servers = append(cfg.Servers, mcpbridge.Server{Name: name, InMemory: servers[name]})
			i.Tools = append(i.Tools, toolset.Server{Name: name})
		}
		var err error
		i.sup, err = supervisor.Start(i.system, cfg)
		require.NoError(t, err)
		defer func() {
			require.NoError(t, i.stop(time.Minute))
			time.Sleep(3 * time.Second) // synctest: the throttle of Proto.Actor's dead letters ends
		}()
		subscribed := i.system.EventStream.Length()
		tools := newToolsets(i.toolset, i.Tools)
		defer func() {
			tools.closeAll()
			require.Equal(t, subscribed, i.system.EventStream.Length(), "all toolsets are closed")
		}()
		scenario(t, i, tools)
	})
}

// responsesTo runs requests, and returns all lines of output, decoded.
func responsesTo(t *testing.T, i *instance, tools *toolsets, parallel int, requests string) []map[string]any {
	t.Helper()
	var out strings.Builder
	r := newRunner(i.sup.Client(), &out, parallel)
	r.toolsets = tools
	r.run(t.Context(), strings.NewReader(requests))
	return decoded(t, out.String())
}

func decoded(t *testing.T, output string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(output) {
		var decoded map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &decoded), line)
		lines = append(lines, decoded)
	}
	return lines
}

// sequence returns the id of each response and the name of each event, in order.
func sequence(lines []map[string]any) (names []string) {
	for _, line := range lines {
		if event, ok := line["event"].(string); ok {
			names = append(names, event)
			continue
		}
		names = append(names, line["id"].(string))
	}
	return names
}

// text returns the text in the result of a response, or its error.
func text(response map[string]any) string {
	if failure, ok := response["error"].(string); ok {
		return failure
	}
	content := response["result"].(map[string]any)["content"].([]any)
	return content[0].(map[string]any)["text"].(string)
}

// served serves a server over HTTP on a loopback socket.
func served(t *testing.T, server *mcp.Server) (url string) {
	t.Helper()
	s := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(func() {
		s.Close()
		for session := range server.Sessions() { // sessions that the client left open
			session.Close()
		}
	})
	return s.URL
}

// configured writes a configuration file.
func configured(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "servers.json")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
