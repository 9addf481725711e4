// Package servertest has the MCP servers and the configuration files of the tests of commands.
package servertest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/mcpactor/mcpactor/internal/leaktest"
)

// RunTests runs the tests of a package, and checks that no goroutine is left. It ends the program.
func RunTests(m *testing.M) {
	WithoutLogins()
	goleak.VerifyTestMain(m, leaktest.Throttle...)
}

// WithoutLogins hides the logins of the user from the tests: one may be for a port that a test uses.
func WithoutLogins() {
	os.Setenv("XDG_CONFIG_HOME", filepath.Join(os.TempDir(), "mcpactor-without-logins")) //nolint:errcheck // the name is valid
}

// NewTools returns a server with tools. Each reports progress, and returns its own name: after
// a second if the name begins with "slow".
func NewTools(names ...string) *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	for _, name := range names {
		AddTool(server, &mcp.Tool{Name: name, Title: "Title of " + name})
	}
	return server
}

// AddTool adds one of these tools.
func AddTool(server *mcp.Server, tool *mcp.Tool) {
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

// Serve serves a server over HTTP on a loopback socket.
func Serve(t *testing.T, server *mcp.Server) (url string) {
	t.Helper()
	s := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	t.Cleanup(func() {
		s.Close()
		for session := range server.Sessions() { // sessions that the client left open
			session.Close() //nolint:errcheck // nobody waits for it
		}
	})
	return s.URL
}

// File writes a configuration file.
func File(t *testing.T, text string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "servers.json")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
