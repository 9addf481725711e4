package main

import (
	"context"
	"encoding/json"
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

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
	"github.com/mcpactor/mcpactor/toolset"
)

// newTools returns a server whose tools answer with their name, after a second if it
// begins with "slow", and tell of their progress.
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

// imagine runs a scenario in fake time, with servers in memory, and a runner for them.
func imagine(t *testing.T, servers map[string]*mcp.Server, scenario func(t *testing.T, l *launched, tools *toolsets)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var cfg supervisor.Config
		l := &launched{File: &config.File{}, system: newSystem(zerolog.Nop())}
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			cfg.Servers = append(cfg.Servers, mcpbridge.Server{Name: name, InMemory: servers[name]})
			l.Tools = append(l.Tools, toolset.Server{Name: name})
		}
		var err error
		l.sup, err = supervisor.Start(l.system, cfg)
		require.NoError(t, err)
		defer func() {
			require.NoError(t, l.stop(time.Minute))
			time.Sleep(3 * time.Second) // synctest: Proto.Actor's throttle of dead letters ends
		}()
		subscribed := l.system.EventStream.Length()
		tools := newToolsets(l.toolset, l.Tools)
		defer func() {
			tools.forgetAll()
			require.Equal(t, subscribed, l.system.EventStream.Length(), "all toolsets are closed")
		}()
		scenario(t, l, tools)
	})
}

// answersTo runs requests, and returns all lines of output, decoded.
func answersTo(t *testing.T, l *launched, tools *toolsets, parallel int, requests string) []map[string]any {
	t.Helper()
	var out strings.Builder
	r := newRunner(l.sup.Client(), &out, parallel)
	r.tools = tools
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

// sequence returns the ids of the answers, and the names of the events.
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

// text is the text of an answer's result, or its error.
func text(answer map[string]any) string {
	if failure, ok := answer["error"].(string); ok {
		return failure
	}
	content := answer["result"].(map[string]any)["content"].([]any)
	return content[0].(map[string]any)["text"].(string)
}

// served serves a server over HTTP, on a loopback socket.
func served(t *testing.T, server *mcp.Server) (url string) {
	t.Helper()
	s := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(func() {
		s.Close()
		for session := range server.Sessions() { // those that were left open
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
