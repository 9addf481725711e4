//go:build real

package real

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// linesToTry returns the commands of the README that need neither Go nor a clone.
func linesToTry(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(text), "\n## Try it\n")
	require.True(t, found)
	_, after, found = strings.Cut(after, "```sh\n")
	require.True(t, found)
	block, _, found := strings.Cut(after, "\n```")
	require.True(t, found)
	return strings.Split(block, "\n")
}

// newcomer is somebody who tries the lines of the README: with a home that has no cache, and the servers of Cursor.
type newcomer struct {
	*harness
	env []string
}

func newNewcomer(h *harness, path ...string) *newcomer {
	h.t.Helper()
	home := filepath.Join(h.dir, "home")
	require.NoError(h.t, os.MkdirAll(filepath.Join(home, ".cursor"), 0o700))
	const servers = `{"mcpServers": {"memory": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-memory"]}}}`
	require.NoError(h.t, os.WriteFile(filepath.Join(home, ".cursor", "mcp.json"), []byte(servers), 0o600))
	path = append(append([]string{filepath.Dir(h.mcpactor())}, path...), os.Getenv("PATH"))
	return &newcomer{h, []string{"HOME=" + home, "PATH=" + strings.Join(path, ":"), "TERM=dumb", "HTTPS_PROXY=http://127.0.0.1:1", "NO_PROXY="}}
}

// tries runs a line in a folder, and returns what it says, and its status.
func (n *newcomer) tries(line, folder string) (said string, status int) {
	n.t.Helper()
	cmd := exec.Command("sh", "-c", line)
	cmd.Dir, cmd.Env = folder, n.env
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		require.NoError(n.t, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// What the README says to try works as it stands. npx finds the server in this folder. The host of the login does not exist. Others run
// the rest: TestClaudeCodeDoesWhatTheReadmeSays has the lines of Claude Code.
func TestLinesOfTheReadmeWork(t *testing.T) {
	h := newHarness(t)
	n := newNewcomer(h)
	here, err := os.Getwd()
	require.NoError(t, err)
	want := map[string]struct {
		status int
		says   string
	}{
		"doctor": {0, "memory works"}, "login": {1, "mcp.example.com/mcp: unavailable: "}, "tools": {0, "memory__read_graph"}, "call": {0, `"entities"`},
	}
	for _, line := range linesToTry(t) {
		words := strings.Fields(line)
		switch words[0] {
		case "go", "claude":
			continue
		}
		require.Equal(t, "mcpactor", words[0], line)
		w, known := want[words[1]]
		require.True(t, known, line)
		delete(want, words[1])
		said, status := n.tries(line, here)
		require.Equal(t, w.status, status, "%s: %s", line, said)
		require.Contains(t, strings.Join(strings.Fields(said), " "), w.says, line)
	}
	require.Empty(t, want, "the README says so no more")
}
