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

// files starts a world with a server, "s", for the files of a directory.
func files(t *testing.T, dir string) *world {
	t.Helper()
	w := newWorld(t)
	w.start(supervisor.Config{}, w.serve("s", recipe{
		script: "@modelcontextprotocol/server-filesystem/dist/index.js",
		args:   []string{dir},
	}, stdio))
	return w
}

func TestFilesAreWrittenReadAndListed(t *testing.T) {
	dir := t.TempDir()
	w := files(t, dir)
	var writes []*pending
	for i := range 20 {
		file := filepath.Join(dir, fmt.Sprintf("file-%02d", i))
		writes = append(writes, w.send(call("a", "write_file", arguments{"path": file, "content": fmt.Sprint("content ", i)})))
	}
	for i, p := range writes {
		p.ok(1)
		content, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("file-%02d", i)))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprint("content ", i), string(content))
	}
	long := strings.Repeat("0123456789abcde\n", 1<<16) // many times what a pipe takes
	require.NoError(t, os.WriteFile(filepath.Join(dir, "long"), []byte(long), 0o600))
	require.Equal(t, long, w.send(call("a", "read_text_file", arguments{"path": filepath.Join(dir, "long")})).text(1))
	listed := w.send(call("a", "list_directory", arguments{"path": dir})).text(1)
	require.Len(t, strings.Split(listed, "\n"), 21)
	require.Contains(t, listed, "[FILE] file-19")
}

func TestErrorOfAToolIsAResultAndNoReasonToRestart(t *testing.T) {
	dir := t.TempDir()
	w := files(t, dir)
	w.send(&messages.Open{Header: messages.To("s", "a")}).reply()
	before := w.servers()
	for _, path := range []string{"/etc/passwd", filepath.Join(dir, "..", "x"), filepath.Join(dir, "none")} {
		r := w.send(call("a", "read_text_file", arguments{"path": path})).returns()
		require.True(t, r.Result.IsError, path)
		require.EqualValues(t, 1, r.Generation)
	}
	r := w.send(call("a", "read_text_file", arguments{"path": 42})).returns()
	require.True(t, r.Result.IsError, "a wrong argument")
	r = w.send(call("a", "no_such_tool", arguments{})).returns()
	require.True(t, r.Result.IsError, "an unknown tool")
	w.send(call("a", "list_directory", arguments{"path": dir})).ok(1)
	require.Equal(t, before, w.servers())
	require.Zero(t, count[*messages.SessionRestarting](w))
}
