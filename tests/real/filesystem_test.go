//go:build real

package real

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// startFilesServer returns a harness with a server "s" for the files of a directory.
func startFilesServer(t *testing.T, dir string) *harness {
	t.Helper()
	h := newHarness(t)
	h.start(supervisor.Config{}, h.serve("s", serverProgram{
		script: "@modelcontextprotocol/server-filesystem/dist/index.js",
		args:   []string{dir},
	}, stdio))
	return h
}

func TestFilesAreWrittenReadAndListed(t *testing.T) {
	dir := t.TempDir()
	h := startFilesServer(t, dir)
	var writes []*sentCommand
	for i := range 20 {
		file := filepath.Join(dir, fmt.Sprintf("file-%02d", i))
		writes = append(writes, h.send(call("a", "write_file", arguments{"path": file, "content": fmt.Sprint("content ", i)})))
	}
	for i, p := range writes {
		p.ok(1)
		content, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("file-%02d", i)))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("content ", i), string(content))
	}
	long := strings.Repeat("0123456789abcde\n", 1<<16) // many times the size of a pipe's buffer
	require.NoError(t, os.WriteFile(filepath.Join(dir, "long"), []byte(long), 0o600))
	require.Equal(t, long, h.send(call("a", "read_text_file", arguments{"path": filepath.Join(dir, "long")})).text(1))
	listed := h.send(call("a", "list_directory", arguments{"path": dir})).text(1)
	require.Len(t, strings.Split(listed, "\n"), 21)
	require.Contains(t, listed, "[FILE] file-19")
}

func TestErrorOfAToolIsAResultAndNoReasonToRestart(t *testing.T) {
	dir := t.TempDir()
	h := startFilesServer(t, dir)
	h.send(&messages.Open{Header: messages.To("s", "a")}).reply()
	before := h.servers()
	for _, path := range []string{"/etc/passwd", filepath.Join(dir, "..", "x"), filepath.Join(dir, "none")} {
		r := h.send(call("a", "read_text_file", arguments{"path": path})).returns()
		require.True(t, r.Result.IsError, path)
		require.EqualValues(t, 1, r.Generation)
	}
	r := h.send(call("a", "read_text_file", arguments{"path": 42})).returns()
	require.True(t, r.Result.IsError, "a wrong argument")
	r = h.send(call("a", "no_such_tool", arguments{})).returns()
	require.True(t, r.Result.IsError, "an unknown tool")
	h.send(call("a", "list_directory", arguments{"path": dir})).ok(1)
	require.Equal(t, before, h.servers())
	require.Zero(t, countEvents[*messages.SessionRestarting](h))
}
