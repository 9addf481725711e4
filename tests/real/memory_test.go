//go:build real

package real

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// memoryServer returns the configuration of a server that stores a graph in a file.
func (h *harness) memoryServer(name, file string) mcpbridge.Server {
	return h.serve(name, serverProgram{
		script: "@modelcontextprotocol/server-memory/dist/index.js",
		env:    map[string]string{"MEMORY_FILE_PATH": filepath.Join(h.dir, file)},
	}, stdio)
}

// addToGraph returns a call that adds to the graph. It is not idempotent.
func addToGraph(scope, name string, opts ...func(*messages.CallTool)) *messages.CallTool {
	entity := arguments{"name": name, "entityType": "person", "observations": []string{"was here"}}
	return call(scope, "create_entities", arguments{"entities": []any{entity}}, opts...)
}

// readGraph returns a call that reads the graph.
func readGraph(scope string, opts ...func(*messages.CallTool)) *messages.CallTool {
	return call(scope, "read_graph", arguments{}, opts...)
}

func TestServersOfOneKindKeepTheirOwnGraphs(t *testing.T) {
	h := newHarness(t)
	h.start(supervisor.Config{}, h.memoryServer("one", "one"), h.memoryServer("two", "two"))
	h.send(addToGraph("a", "Ada", on("one"))).ok(1)
	h.send(addToGraph("a", "Bob", on("two"))).ok(1)
	for generation := range uint64(2) {
		if generation > 0 {
			h.killServers() // the next processes read the files
		}
		one := h.send(readGraph("a", on("one"))).text(generation + 1)
		require.Contains(t, one, "Ada")
		require.NotContains(t, one, "Bob")
		two := h.send(readGraph("a", on("two"))).text(generation + 1)
		require.Contains(t, two, "Bob")
		require.NotContains(t, two, "Ada")
	}
}

func TestCallThatMustNotRunTwiceIsLostWithItsProcess(t *testing.T) {
	h := newHarness(t)
	h.start(supervisor.Config{}, h.memoryServer("s", "graph"))
	list, is := h.send(&messages.ListTools{Header: messages.To("s", "a")}).reply().(*messages.ToolList)
	require.True(t, is)
	require.Len(t, list.Result.Tools, 9)

	killBlocked := h.blockOnFile("graph")
	plain := h.send(addToGraph("a", "Ada"))
	killBlocked()
	f := plain.fails(messages.CodeLost)
	require.True(t, f.MayHaveRun)
	require.False(t, f.Replayed)
	require.EqualValues(t, 1, f.Generation)
	require.Contains(t, f.Detail, "killed")
	require.NotContains(t, h.send(readGraph("a")).text(2), "Ada")

	killBlocked = h.blockOnFile("graph")
	again := h.send(addToGraph("a", "Bob", replay(messages.ReplayAlways)))
	killBlocked()
	require.True(t, again.ok(3).Replayed)
	require.Contains(t, h.send(readGraph("a")).text(3), "Bob")
}

// blockOnFile replaces a file by a pipe without a writer, so that a server that opens the
// file blocks. The function that it returns waits for such a server, and then kills it and
// removes the pipe.
func (h *harness) blockOnFile(file string) (kill func()) {
	h.t.Helper()
	path := filepath.Join(h.dir, file)
	os.Remove(path)
	require.NoError(h.t, unix.Mkfifo(path, 0o600))
	return func() {
		h.t.Helper()
		pipe := -1
		h.eventually("the server reads "+file, func() bool {
			fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			if err == nil {
				pipe = fd
			}
			return err == nil
		})
		require.NoError(h.t, os.Remove(path))
		h.killServers()
		require.NoError(h.t, unix.Close(pipe))
	}
}
