//go:build real

package real

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
)

// recipe says how a server is run.
type recipe struct {
	script string   // in node_modules
	args   []string // over all transports
	env    map[string]string
	ways   []way
}

// way is a transport that a server speaks.
type way struct {
	name      string
	transport string
	path      string   // of the URL; none is stdio
	args      []string // that make it speak it; $PORT is where it listens
}

var stdio = way{name: "stdio"}

// everything is the reference server, and legacy the same with the transport of
// protocol 2024-11-05 too.
var (
	everything = recipe{
		script: "@modelcontextprotocol/server-everything/dist/index.js",
		ways:   []way{stdio, {name: "http", path: "/mcp", args: []string{"streamableHttp"}}},
	}
	legacy = recipe{
		script: everything.script,
		ways:   append(everything.ways, way{name: "sse", path: "/sse", args: []string{"sse"}, transport: mcpbridge.TransportSSE}),
	}
)

// each runs a scenario over each transport of a server, which is named "s".
func each(t *testing.T, r recipe, cfg supervisor.Config, scenario func(w *world)) {
	t.Helper()
	for _, at := range r.ways {
		t.Run(at.name, func(t *testing.T) {
			w := newWorld(t)
			w.start(cfg, w.serve("s", r, at))
			scenario(w)
		})
	}
}

// serve returns the configuration of a server. One over HTTP is started here.
func (w *world) serve(name string, r recipe, at way) mcpbridge.Server {
	w.t.Helper()
	script := installed(w.t, r.script)
	w.scripts = append(w.scripts, script)
	args := append([]string{script}, append(r.args, at.args...)...)
	env := map[string]string{"HOME": w.dir, "TMPDIR": w.dir}
	for name, value := range r.env {
		env[name] = value
	}
	if at.path == "" {
		return mcpbridge.Server{Name: name, Command: "node", Args: args, Env: env, Dir: w.dir}
	}
	return mcpbridge.Server{Name: name, URL: w.listen(args, env) + at.path, Transport: at.transport}
}

// installed returns the path of what the script install has installed.
func installed(t *testing.T, script string) string {
	t.Helper()
	const hint = "run tests/real/install"
	_, err := exec.LookPath("node")
	require.NoError(t, err, hint)
	wanted, err := os.Stat("package-lock.json")
	require.NoError(t, err)
	found, err := os.Stat("node_modules/.package-lock.json")
	require.NoError(t, err, hint)
	require.False(t, found.ModTime().Before(wanted.ModTime()), "node_modules is older than package-lock.json: "+hint)
	path, err := filepath.Abs(filepath.Join("node_modules", script))
	require.NoError(t, err)
	require.FileExists(t, path, hint)
	return path
}

// servers returns the processes of the servers.
func (w *world) servers() (all []process) {
	for _, p := range ours() {
		for _, script := range w.scripts {
			if p.parent == os.Getpid() && strings.Contains(p.args, script) {
				all = append(all, p)
			}
		}
	}
	return all
}

// below returns the processes that the servers have started.
func (w *world) below() (all []process) {
	for _, p := range w.servers() {
		all = append(all, descendants(p.pid)...)
	}
	return all
}

// kill kills the servers.
func (w *world) kill() {
	w.t.Helper()
	victims := w.servers()
	require.NotEmpty(w.t, victims)
	for _, p := range victims {
		require.NoError(w.t, syscall.Kill(p.pid, syscall.SIGKILL))
	}
	w.until("the servers are gone", func() bool { return allGone(victims) })
}

// revive starts the servers again that are ours to start.
func (w *world) revive() {
	w.t.Helper()
	for _, r := range w.remotes {
		r.start()
	}
}
