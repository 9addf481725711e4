package serve

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// The files of nine clients, of which two have a former form: each as the client writes it, with its variables, a server that is
// off, and one that cannot be started.
func TestFileOfEachClientIsServed(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	closed := httptest.NewServer(http.NotFoundHandler())
	defer closed.Close()
	withoutDrop := []string{"windsurf/mcp_config.json", ".gemini/settings.json", "opencode.json"} // by the filters of the client
	for file, text := range map[string]string{
		"claude_desktop_config.json": `{"globalShortcut": "", "mcpServers": {
			"works": {"command": "SELF", "env": {"RECORDVAR": "RECORD"}},
			"broken": {"command": "no-such-program", "args": []},
			"off": {"command": "SELF", "env": {"RECORDVAR": "RECORD"}, "disabled": true}}}`,
		".mcp.json": `{"mcpServers": {
			"works": {"type": "stdio", "command": "SELF", "args": [], "env": {"RECORDVAR": "${SERVE_TEST_FILE:-none}"}},
			"broken": {"type": "http", "url": "URL/mcp"},
			"off": {"type": "stdio", "command": "SELF", "env": {"RECORDVAR": "RECORD"}, "disabled": true}}}`,
		".cursor/mcp.json": `{"mcpServers": {
			"works": {"command": "SELF", "envFile": "${workspaceFolder}/works.env"},
			"broken": {"url": "URL/mcp", "headers": {"X-File": "${env:SERVE_TEST_FILE}"}},
			"off": {"command": "SELF", "env": {"RECORDVAR": "RECORD"}, "disabled": true}}}`,
		".vscode/mcp.json": `{"inputs": [], "servers": {
			"works": {"type": "stdio", "command": "SELF", "env": {"RECORDVAR": "${env:SERVE_TEST_FILE}"}}, // a comment
			"broken": {"type": "sse", "url": "URL/sse"},
			"off": {"command": "SELF", "env": {"RECORDVAR": "RECORD"}, "disabled": true},
		}}`,
		"vscode/settings.json": `{"editor.fontSize": 13, "mcp": {"servers": {
			"works": {"command": "SELF", "env": {"RECORDVAR": "${env:SERVE_TEST_FILE}"}},
			"broken": {"command": "no-such-program"},
			"off": {"command": "SELF", "env": {"RECORDVAR": "RECORD"}, "disabled": true}}}}`,
		"windsurf/mcp_config.json": `{"mcpServers": {
			"works": {"command": "SELF", "env": {"RECORDVAR": "${env:SERVE_TEST_FILE}"}, "disabledTools": ["drop"]},
			"broken": {"serverUrl": "URL/mcp"},
			"off": {"command": "SELF", "env": {"RECORDVAR": "RECORD"}, "disabled": true}}}`,
		".gemini/settings.json": `{"general": {}, "mcp": {"excluded": ["off"]}, "mcpServers": {
			"works": {"command": "SELF", "env": {"RECORDVAR": "$SERVE_TEST_FILE"}, "includeTools": ["read", "write"]},
			"broken": {"httpUrl": "URL/mcp"},
			"off": {"command": "SELF", "env": {"RECORDVAR": "RECORD"}}}}`,
		"opencode.json": `{"$schema": "https://opencode.ai/config.json", "mcp": {
			"works": {"type": "local", "command": ["SELF"], "environment": {"RECORDVAR": "{env:SERVE_TEST_FILE}"}, "enabled": true},
			"broken": {"type": "remote", "url": "URL/mcp"},
			"off": {"type": "local", "command": ["SELF"], "environment": {"RECORDVAR": "RECORD"}, "enabled": false}}, "tools": {"works_drop": false}}`,
		"v2/opencode.json": `{"$schema": "https://opencode.ai/config.json", "mcp": {"servers": {
			"works": {"type": "local", "command": ["SELF"], "environment": {"RECORDVAR": "{env:SERVE_TEST_FILE}"}},
			"broken": {"type": "local", "command": ["no-such-program"]},
			"off": {"type": "local", "command": ["SELF"], "environment": {"RECORDVAR": "RECORD"}, "disabled": true}}}}`,
		"zed/settings.json": `// Zed
			{"ui_font_size": 16, "context_servers": {
			"works": {"source": "custom", "command": {"path": "SELF", "args": [], "env": {"RECORDVAR": "RECORD"}}},
			"broken": {"source": "custom", "command": "no-such-program", "args": []},
			"off": {"source": "custom", "enabled": false, "command": "SELF", "env": {"RECORDVAR": "RECORD"}}}}`,
		"librechat.yaml": `
version: 1.3.1
mcpServers:
  works:
    type: stdio
    command: SELF
    env:
      RECORDVAR: "${SERVE_TEST_FILE}"
  broken:
    url: URL/sse
  off:
    command: SELF
    disabled: true
`,
	} {
		t.Run(file, func(t *testing.T) {
			folder := t.TempDir()
			record := filepath.Join(folder, "called")
			t.Setenv("SERVE_TEST_FILE", record)
			t.Setenv("GORACE", "atexit_sleep_ms=0")
			path := filepath.Join(folder, file)
			require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
			filled := strings.NewReplacer("SELF", self, "URL", closed.URL, "RECORDVAR", recordVar, "RECORD", record)
			require.NoError(t, os.WriteFile(path, []byte(filled.Replace(text)), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(folder, "works.env"), []byte(recordVar+"="+record+"\n"), 0o600))

			session := served(t, "--config", path)
			want := []string{"works__read", "works__write", "works__drop"}
			if slices.Contains(withoutDrop, file) {
				want = want[:2]
			}
			require.ElementsMatch(t, want, toolsOf(t, session))
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "works__read"})
			require.NoError(t, err)
			require.False(t, result.IsError)
			called, err := os.ReadFile(record)
			require.NoError(t, err)
			require.Equal(t, "read\n", string(called))
		})
	}
}
