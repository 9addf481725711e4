package config_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/toolset"
)

// loader reads the files of testdata.
var loader = config.Loader{
	LookupEnv: func(name string) (string, bool) {
		value, ok := map[string]string{"API_KEY": "k", "CLIENT_ID": "id", "DB_URL": "postgres://db", "USER_NAME": "ada"}[name]
		return value, ok
	},
	Variable: func(name string) (string, bool) {
		value, ok := map[string]string{"input:issues-key": "i", "LIBRECHAT_USER_ID": "u"}[name]
		return value, ok
	},
}

// H-H: the files of nine clients.
func TestFilesOfOtherClientsAreRead(t *testing.T) {
	here, err := filepath.Abs("testdata")
	require.NoError(t, err)
	home, err := os.UserHomeDir()
	require.NoError(t, err)
	bearer := map[string]string{"Authorization": "Bearer k"}
	exampleEnv := func(mode string) map[string]string {
		return map[string]string{"DB_USER": "ada", "DB_PASSWORD": "pa ss#\"1\"\\n\n", "MODE": mode, "GREETING": "hello $USER world", "EMPTY": ""}
	}
	for file, want := range map[string]struct {
		servers  []mcpbridge.Server
		tools    map[string]toolset.Filter // of the servers with filters
		warnings []string                  // the fields of the warnings
	}{
		// modelcontextprotocol.io, "Connect to local MCP servers".
		"claude_desktop_config.json": {
			servers: []mcpbridge.Server{
				{Name: "Issue-Tracker", Command: "docker", Args: []string{"run", "-i", "--rm", "-e", "TRACKER_TOKEN", "example/tracker-mcp"}, Env: map[string]string{"TRACKER_TOKEN": "not-a-real-token"}},
				{Name: "filesystem", Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-filesystem", "/home/ada/Documents"}},
			},
			warnings: []string{"globalShortcut", "mcpServers.Issue Tracker", "preferences"},
		},
		// code.claude.com/docs/en/mcp, as of Claude Code 2.1.
		"claude_code.mcp.json": {
			servers: []mcpbridge.Server{
				{Name: "api", URL: "https://api.example.com/mcp", Transport: "http", Headers: bearer},
				{Name: "db", Command: "db-mcp", Args: []string{"--dsn", "postgres://db"}, Env: map[string]string{"CACHE_DIR": "/tmp/db"}},
				{Name: "events", URL: "https://events.example.com/sse", Transport: "sse"},
			},
			warnings: []string{"mcpServers.api.timeout", "mcpServers.events.headersHelper"},
		},
		// cursor.com/docs/context/mcp, "Config interpolation".
		".cursor/mcp.json": {
			servers: []mcpbridge.Server{
				{Name: "local", Command: "python", Args: []string{filepath.Join(here, "tools", "server.py"), "--user", "ada"}, Env: exampleEnv("strict")},
				{Name: "remote", URL: "https://mcp.example.com/mcp", Headers: bearer},
			},
		},
		// code.visualstudio.com/docs/copilot/reference/mcp-configuration, of May 2026.
		".vscode/mcp.json": {
			servers: []mcpbridge.Server{
				{Name: "docs", Command: "node", Args: []string{here + "/build/index.js", "--home", home}, Env: exampleEnv("loose"), Dir: here},
				{Name: "issues", URL: "https://issues.example.com/mcp", Transport: "http", Headers: map[string]string{"Authorization": "Bearer i"}},
				{Name: "legacy", URL: "http://127.0.0.1:3001/sse", Transport: "sse"},
			},
			warnings: []string{"servers.docs.sandboxEnabled", "servers.docs.dev"},
		},
		// The settings of VS Code before it had mcp.json, 1.99.
		"vscode_settings.json": {
			servers:  []mcpbridge.Server{{Name: "time", Command: "uvx", Args: []string{"mcp-server-time"}}},
			warnings: []string{"editor.fontSize", "files.exclude"},
		},
		// docs.windsurf.com/windsurf/cascade/mcp.
		"windsurf_mcp_config.json": {
			servers: []mcpbridge.Server{
				{Name: "hosted", URL: "https://hosted.example.com/mcp", Headers: bearer},
				{Name: "key", Command: "npx", Args: []string{"-y", "key-mcp"}, Env: map[string]string{"KEY": "k3y"}},
			},
			tools:    map[string]toolset.Filter{"hosted": {Name: "hosted", Deny: []string{"delete_repository", "force_push"}}},
			warnings: []string{"mcpServers.hosted.alwaysAllow"},
		},
		// google-gemini/gemini-cli, docs/tools/mcp-server.md and
		// docs/get-started/configuration.md.
		"gemini_settings.json": {
			servers: []mcpbridge.Server{
				{Name: "python", Command: "python", Args: []string{"-m", "my_mcp_server", "--port", "8080"}, Dir: "./mcp-servers/python", Env: map[string]string{"API_KEY": "k", "DB_URL": "postgres://db"}},
				{Name: "stream", URL: "http://localhost:3000/mcp", Transport: "http", Headers: map[string]string{"X-Key": "key k"}},
			},
			tools:    map[string]toolset.Filter{"python": {Name: "python", Allow: []string{"safe_tool", `read\[1]`}, Deny: []string{"dangerous_tool"}}},
			warnings: []string{"general", "tools", "mcp.excluded[1]", "mcpServers.python.timeout", "mcpServers.python.trust"},
		},
		// opencode.ai/v1/docs/mcp-servers.
		"opencode.jsonc": {
			servers: []mcpbridge.Server{
				{Name: "everything", Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-everything"}, Env: map[string]string{"TOKEN": "k", "KEY": "k3y"}},
				{Name: "my.remote", URL: "https://remote.example.com/mcp", Headers: bearer},
				{Name: "shell", Command: "bash", Args: []string{"-c", "KEY=$KEY exec shell-mcp"}},
			},
			tools: map[string]toolset.Filter{
				"everything": {Name: "everything", Deny: []string{"echo"}},
				"my.remote":  {Name: "my.remote", Deny: []string{"delete*"}},
				"shell":      {Name: "shell", Deny: []string{"*"}},
			},
			warnings: []string{"theme", "server", "mcp.everything.timeout", "tools.write", "permission.edit", "permission.bash", "agent"},
		},
		// opencode.ai/v2/docs/mcp-servers.
		"opencode_v2.jsonc": {
			servers: []mcpbridge.Server{{Name: "everything", Command: "npx", Args: []string{"everything"}, Dir: "/srv", Env: map[string]string{"LEVEL": "k"}}},
		},
		// zed.dev/docs/ai/mcp; "former" is the form before version 0.200.
		"zed_settings.json": {
			servers: []mcpbridge.Server{
				{Name: "former", Command: "former-command", Args: []string{"x"}, Env: map[string]string{"A": "b"}},
				{Name: "local-mcp", Command: "some-command", Args: []string{"arg-1", "arg-2"}, Env: map[string]string{}},
				{Name: "remote-mcp", URL: "https://remote.example.com/mcp", Headers: map[string]string{"Authorization": "Bearer not-a-real-token"}},
			},
			warnings: []string{"ui_font_size", "inlay_hints", "file_scan_exclusions", "telemetry"},
		},
		// librechat.ai/docs/configuration/librechat_yaml, version 1.3.
		"librechat.yaml": {
			servers: []mcpbridge.Server{
				{Name: "clickhouse", URL: "https://ch.example.com/mcp", Transport: "http", Headers: map[string]string{"X-User-ID": "u", "Authorization": "Bearer k"}},
				{Name: "everything", URL: "http://localhost:3001/sse"},
				{Name: "puppeteer", Command: "npx", Args: []string{"-y", "@modelcontextprotocol/server-puppeteer"}, Env: map[string]string{"LEVEL": "info"}},
			},
			warnings: []string{
				"version", "cache", "interface", "registration", "mcpServers.everything.timeout", "mcpServers.puppeteer.serverInstructions", "mcpServers.puppeteer.chatMenu",
				"mcpServers.clickhouse.initTimeout", "mcpServers.clickhouse.startup",
			},
		},
	} {
		t.Run(file, func(t *testing.T) {
			got, err := loader.Load(filepath.Join("testdata", file))
			require.NoError(t, err)
			require.Equal(t, want.servers, got.Supervisor.Servers)
			require.Len(t, got.Tools, len(want.servers))
			for i, server := range want.servers {
				tools := toolset.Filter{Name: server.Name}
				if filtered, ok := want.tools[server.Name]; ok {
					tools = filtered
				}
				require.Equal(t, tools, got.Tools[i])
			}
			var warned []string
			for _, warning := range got.Warnings {
				warned = append(warned, warning.Field)
			}
			require.Equal(t, want.warnings, warned)
		})
	}
}
