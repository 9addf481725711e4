//go:build real && claude

package real

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Three clients start what mcpactor adopt has written, and connect; after --undo they start the server itself, from the same bytes. The file
// of Claude Code is as it writes it. That of opencode has comments.
func TestAdoptedServersAreConnected(t *testing.T) {
	h := newHarness(t)
	n := newClaude(h)
	opencode, err := filepath.Abs("claude/node_modules/opencode-linux-x64/bin")
	require.NoError(t, err)
	for i, variable := range n.env {
		if path, is := strings.CutPrefix(variable, "PATH="); is {
			n.env[i] = "PATH=" + opencode + ":" + path
		}
	}
	n.env = append(n.env, "GEMINI_CLI_TRUST_WORKSPACE=true", "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1")
	server := "node " + installed(t, "@modelcontextprotocol/server-memory/dist/index.js")
	_, script, _ := strings.Cut(server, " ")
	home := filepath.Join(h.dir, "home")
	require.NoError(t, os.MkdirAll(filepath.Join(home, ".config", "opencode"), 0o700))

	for client, c := range map[string]struct{ file, text, command, connected string }{
		"claude":   {".claude.json", "", "claude mcp add memory -- " + server, "memory: COMMAND - ✔ Connected"},
		"gemini":   {".gemini/settings.json", "", "gemini mcp add --scope user memory " + server, "✓ memory: COMMAND (stdio) - Connected"},
		"opencode": {".config/opencode/opencode.jsonc", `{"mcp": {"memory": {"type": "local", /* node */ "command": ["node", "` + script + `"],},},}`, "true", "✓ memory"},
	} {
		t.Run(client, func(t *testing.T) {
			file := filepath.Join(home, c.file)
			if c.text != "" {
				require.NoError(t, os.WriteFile(file, []byte(c.text), 0o600))
			}
			said, status := n.tries(c.command, h.dir)
			require.Zero(t, status, said)
			connects := func(command string) {
				t.Helper()
				said, status := n.tries(client+" mcp list", h.dir)
				require.Zero(t, status, said)
				require.Contains(t, said, strings.Replace(c.connected, "COMMAND", command, 1))
				require.Contains(t, said, command)
			}
			connects(server)
			before, err := os.ReadFile(file)
			require.NoError(t, err)
			said, status = n.tries("mcpactor adopt "+client, h.dir)
			require.Zero(t, status, said)
			require.Contains(t, said, "adopted")
			connects("mcpactor serve -- " + server)
			said, status = n.tries("mcpactor adopt --undo "+client, h.dir)
			require.Zero(t, status, said)
			after, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(before), string(after))
			connects(server)
		})
	}
}
