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

// memory returns the configuration of a server that keeps a graph in a file.
func (w *world) memory(name, file string) mcpbridge.Server {
	return w.serve(name, recipe{
		script: "@modelcontextprotocol/server-memory/dist/index.js",
		env:    map[string]string{"MEMORY_FILE_PATH": filepath.Join(w.dir, file)},
	}, stdio)
}

// learn is a call that adds to the graph: it is not idempotent.
func learn(scope, name string, opts ...func(*messages.CallTool)) *messages.CallTool {
	entity := arguments{"name": name, "entityType": "person", "observations": []string{"was here"}}
	return call(scope, "create_entities", arguments{"entities": []any{entity}}, opts...)
}

// recall is a call that reads the graph.
func recall(scope string, opts ...func(*messages.CallTool)) *messages.CallTool {
	return call(scope, "read_graph", arguments{}, opts...)
}

func TestServersOfOneKindKeepTheirOwnGraphs(t *testing.T) {
	w := newWorld(t)
	w.start(supervisor.Config{}, w.memory("one", "one"), w.memory("two", "two"))
	w.send(learn("a", "Ada", on("one"))).ok(1)
	w.send(learn("a", "Bob", on("two"))).ok(1)
	for generation := range uint64(2) {
		if generation > 0 {
			w.kill() // what is in the files, the next processes know
		}
		one := w.send(recall("a", on("one"))).text(generation + 1)
		require.Contains(t, one, "Ada")
		require.NotContains(t, one, "Bob")
		two := w.send(recall("a", on("two"))).text(generation + 1)
		require.Contains(t, two, "Bob")
		require.NotContains(t, two, "Ada")
	}
}

func TestCallThatMustNotRunTwiceIsLostWithItsProcess(t *testing.T) {
	w := newWorld(t)
	w.start(supervisor.Config{}, w.memory("s", "graph"))
	list, is := w.send(&messages.ListTools{Header: messages.To("s", "a")}).reply().(*messages.ToolList)
	require.True(t, is)
	require.Len(t, list.Result.Tools, 9)

	goOn := w.block("graph")
	plain := w.send(learn("a", "Ada"))
	goOn()
	f := plain.fails(messages.CodeLost)
	require.True(t, f.MayHaveRun)
	require.False(t, f.Replayed)
	require.EqualValues(t, 1, f.Generation)
	require.Contains(t, f.Detail, "killed")
	require.NotContains(t, w.send(recall("a")).text(2), "Ada")

	goOn = w.block("graph")
	again := w.send(learn("a", "Bob", replay(messages.ReplayAlways)))
	goOn()
	require.True(t, again.ok(3).Replayed)
	require.Contains(t, w.send(recall("a")).text(3), "Bob")
}

// block makes a server wait that reads a file: it is a pipe that nobody writes
// to. What it returns waits until one does, kills the server, and takes the
// pipe away.
func (w *world) block(file string) (goOn func()) {
	w.t.Helper()
	path := filepath.Join(w.dir, file)
	os.Remove(path)
	require.NoError(w.t, unix.Mkfifo(path, 0o600))
	return func() {
		w.t.Helper()
		pipe := -1
		w.until("the server reads "+file, func() bool {
			fd, err := unix.Open(path, unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
			if err == nil {
				pipe = fd
			}
			return err == nil
		})
		require.NoError(w.t, os.Remove(path))
		w.kill()
		require.NoError(w.t, unix.Close(pipe))
	}
}
