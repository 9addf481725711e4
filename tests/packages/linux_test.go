//go:build packages

package packages

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/freeport"
)

// managers install and remove a package in a folder with a database of its own.
var managers = map[string]struct{ database, prepare, install, remove string }{
	"deb": {
		database: "var/lib/dpkg",
		prepare:  "mkdir -p ROOT/var/lib/dpkg/info ROOT/var/lib/dpkg/updates && touch ROOT/var/lib/dpkg/status",
		install:  "dpkg --root=ROOT --log=/dev/null --install FILE",
		remove:   "dpkg --root=ROOT --log=/dev/null --purge mcpactor",
	},
	"rpm": {
		database: "database",
		prepare:  "mkdir ROOT/database",
		install:  "rpm --root ROOT --dbpath /database --install FILE",
		remove:   "rpm --root ROOT --dbpath /database --erase mcpactor",
	},
}

func TestLinuxPackagesAreInstalledAndRemoved(t *testing.T) {
	for format, manager := range managers {
		t.Run(format, func(t *testing.T) {
			root := t.TempDir()
			manage := func(command string) {
				execute(t, "sh", "-c", strings.NewReplacer("ROOT", root, "FILE", file("mcpactor_"+host+"."+format)).Replace(command))
			}
			manage(manager.prepare)
			manage(manager.install)
			program := filepath.Join(root, "usr/bin/mcpactor")
			require.Contains(t, execute(t, program, "version"), version(t))
			require.FileExists(t, filepath.Join(root, "usr/share/doc/mcpactor/docs/serve.md"))
			require.FileExists(t, filepath.Join(root, "usr/share/bash-completion/completions/mcpactor"))
			serveAsUnit(t, filepath.Join(root, "usr/lib/systemd/user/mcpactor.service"), program)

			manage(manager.remove)
			for path := range sums(t, root) {
				require.True(t, strings.HasPrefix(path, manager.database), "%s is left", path)
			}
			require.NoDirExists(t, filepath.Join(root, "usr/share/doc/mcpactor"))
		})
	}
}

// serveAsUnit runs the command of a unit of systemd, at another address, with a file of servers where systemd would look for it.
func serveAsUnit(t *testing.T, unit, program string) {
	t.Helper()
	text, err := os.ReadFile(unit)
	require.NoError(t, err)
	found := regexp.MustCompile(`(?m)^ExecStart=mcpactor (.*127\.0\.0\.1:8090.*%E/mcpactor/servers\.json)$`).FindSubmatch(text)
	require.NotNil(t, found, "%s", text)
	home := t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(home, "mcpactor"), 0o700))
	servers := `{"mcpServers": {"greeter": {"url": "` + greeter(t) + `"}}}`
	require.NoError(t, os.WriteFile(filepath.Join(home, "mcpactor", "servers.json"), []byte(servers), 0o600))
	address := freeAddress(t)
	words := strings.NewReplacer("127.0.0.1:8090", address, "%E", home).Replace(string(found[1]))
	cmd := exec.Command(program, strings.Fields(words)...)
	cmd.Env = []string{"HOME=" + home}
	server := requireServed(t, cmd, address, "", "greeter__greet")
	require.Equal(t, "mcpactor", server.Name)
	require.True(t, strings.HasPrefix(version(t), "mcpactor "+server.Version+" "), server.Version)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}

// greeter is an MCP server at a URL, which it returns.
func greeter(t *testing.T) string {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "greeter", Version: "1"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello"}}}, nil, nil
	})
	// A container reaches it by another address than that at which it listens.
	options := &mcp.StreamableHTTPOptions{DisableLocalhostProtection: true}
	web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, options))
	t.Cleanup(web.Close)
	return web.URL
}

func freeAddress(t *testing.T) string {
	t.Helper()
	address, err := freeport.Addr("127.0.0.1")
	require.NoError(t, err)
	return address
}

// requireServed starts "mcpactor serve --listen", calls a tool through it, and returns what the server says that it is. The line that says where clients
// connect is its first: there is no warning.
func requireServed(t *testing.T, cmd *exec.Cmd, address, token, tool string) *mcp.Implementation {
	t.Helper()
	said, err := cmd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	line, err := bufio.NewReader(said).ReadString('\n')
	require.NoError(t, err, line)
	require.Contains(t, line, "clients connect to http://")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).
		Connect(ctx, &mcp.StreamableClientTransport{
			Endpoint: "http://" + address + "/mcp", HTTPClient: &http.Client{Transport: bearer(token)},
		}, nil)
	require.NoError(t, err)
	defer session.Close()
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool})
	require.NoError(t, err)
	require.Equal(t, "hello", result.Content[0].(*mcp.TextContent).Text)
	return session.InitializeResult().ServerInfo
}

// bearer is a token that requests have.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	if b != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}
