package adopt

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/config"
)

var installed = program{[]string{"mcpactor"}, "/opt/bin/mcpactor"}

// all changes all servers of a file, and returns why some stay as they are, by their names.
func all(t *testing.T, path string, data []byte, c change) (now []byte, why map[string]string) {
	t.Helper()
	d, err := newDocument(path, data)
	require.NoError(t, err)
	why = map[string]string{}
	for i, s := range d.servers {
		var reason string
		if d, reason = d.changed(i, c); reason != "" {
			why[s.name] = reason
		}
	}
	return d.data, why
}

// requireUndone checks that a file that is adopted is the same again after undo, and returns it as it is adopted.
func requireUndone(t *testing.T, path string, data []byte) (adopted []byte, why map[string]string) {
	t.Helper()
	for _, p := range []program{{[]string{"/opt/my bin/mcpactor"}, "/opt/my bin/mcpactor"}, {[]string{"npx", "-y", "mcpactor"}, ""}, installed} {
		adopted, why = all(t, path, data, adopter(p))
		again, _ := all(t, path, adopted, adopter(p))
		require.Equal(t, string(adopted), string(again), "adopting again changes nothing")
		undone, _ := all(t, path, adopted, undo)
		require.Equal(t, string(data), string(undone), "adopted: %s", adopted)
	}
	return adopted, why
}

// samples are files in the styles of each syntax.
var samples = map[string][]string{
	"mcp.json": {
		`{"mcpServers":{"a":{"command":"npx","args":["-y","x"]}}}`,
		`{"mcpServers":{"a":{"command":"npx"},"b":{"args":[],"command":"x"},"c":{"command":"x","args":[ ],},}}`,
		"\ufeff{\r\n\t\"mcpServers\": {\r\n\t\t\"a\": {\r\n\t\t\t// the command\r\n\t\t\t\"command\" : \"npx\" // it\r\n\t\t}\r\n\t}\r\n}\r\n",
		`{"mcpServers": {"a": {"url": "https://x.example/mcp"}, "b": {"type": "http", "url": "https://x.example/mcp", "disabled": true}}}`,
		`{"mcpServers": {"a": {"command": "n\u0070x", "args": [/* none */]}, "b": {"command": "x", "args": [1, "y"]}}}`,
		"{\"mcpServers\": {\"a\": {\n  \"command\": \"npx\",\n  \"args\": [\n    \"-y\",\n    \"x\"\n  ]\n}}}",
		`{"mcp": {"a": {"type": "local", "command": ["npx", "x"]}, "b": {"type":"remote","url":"https://x.example/mcp"}}}`,
	},
	"config.toml": {
		"model = \"o\"\n\n[mcp_servers.a]\ncommand = \"npx\"\nargs = ['-y', \"x\"] # it\n\n[mcp_servers.a.env]\nA = \"b\"\n\n[mcp_servers.\"b c\"]\r\nenabled=false\r\ncommand='x'\r\n",
		"mcp_servers.a.command = \"x\"\n[mcp_servers]\nb = {command=\"x\"}\nc = { command = \"x\", args = [], env = {A = \"b\"} }\n[[other]]\ncommand = \"x\"\n",
		"[mcp_servers.a]\nurl = \"https://x.example/mcp\"\nstartup_timeout_sec = 5\n[mcp_servers.b]\ncommand = \"x\"\nargs = [\n  # all\n  \"y\",\n  \"z\",\n]\n",
	},
	"librechat.yaml": {
		"mcpServers:\n  a:\n    command: npx\n    args: [-y, 'x']\n  b:\n    command: \"npx\" # it\n    env: {A: b}\n  c: {command: npx}\n  ü: {args: [ä, b], command: npx}\n",
		"mcpServers:\r\n  a:\r\n    command: 'it''s'\r\n    args:\r\n    - -y\r\n    - 8080\r\n  b:\r\n    type: streamable-http\r\n    url: https://x.example/mcp\r\n",
		"\ufeffmcpServers:\n    a:\n        args:\n            -   \"-y\"\n        command: npx",
	},
}

// Line ends, a byte order mark, comments, and the style of each file.
func TestUndoRestoresEachByte(t *testing.T) {
	for name, texts := range samples {
		for _, text := range texts {
			adopted, why := requireUndone(t, name, []byte(text))
			require.Empty(t, why, "%s", adopted)
			if ends := strings.Count(text, "\r\n"); ends == strings.Count(text, "\n") && ends > 0 {
				require.NotRegexp(t, `[^\r]\n`, string(adopted))
			}
		}
	}
}

// The files of all clients that package config reads. It finds the same servers in them, behind serve.
func TestFilesOfAllClientsAreAdopted(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.CopyFS(folder, os.DirFS("../../../../config/testdata")))
	loader := config.Loader{
		LookupEnv: func(string) (string, bool) { return "https://value", true },
		Variable:  func(name string) (string, bool) { return "value", !strings.HasPrefix(name, "workspace") },
	}
	left := map[string]string{ // the servers that stay as they are
		"claude_code.mcp.json": "api events", ".cursor/mcp.json": "remote", ".vscode/mcp.json": "issues legacy", "windsurf_mcp_config.json": "hosted",
		"gemini_settings.json": "stream", "opencode.jsonc": "my.remote", "zed_settings.json": "remote-mcp", "librechat.yaml": "clickhouse",
	}
	var paths []string
	for _, pattern := range []string{"*.json*", "*.yaml", ".*/mcp.json"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, found)
		paths = append(paths, found...)
	}
	for _, path := range paths {
		name, err := filepath.Rel(folder, path)
		require.NoError(t, err)
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			before, err := loader.Load(path)
			require.NoError(t, err)
			adopted, _ := requireUndone(t, path, data)
			require.NoError(t, os.WriteFile(path, adopted, 0o600))
			after, err := loader.Load(path)
			require.NoError(t, err)
			for i, s := range before.Supervisor.Servers {
				switch {
				case slices.Contains(strings.Fields(left[filepath.ToSlash(name)]), s.Name):
				case s.URL != "":
					s.Command, s.Args, s.URL = "mcpactor", []string{"serve", s.URL}, ""
				default:
					s.Command, s.Args = "mcpactor", append([]string{"serve", "--", s.Command}, s.Args...)
				}
				require.Equal(t, s, after.Supervisor.Servers[i])
			}
			require.Equal(t, before.Tools, after.Tools)
			require.Len(t, after.Supervisor.Servers, len(before.Supervisor.Servers))
		})
	}
}
