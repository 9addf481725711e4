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

// serverProgram describes how a server is started.
type serverProgram struct {
	script     string   // in node_modules
	args       []string // over all transports
	env        map[string]string
	transports []serverTransport
}

// serverTransport is a transport that a server speaks.
type serverTransport struct {
	name      string
	transport string
	path      string   // of the URL; empty for stdio
	args      []string // arguments for this transport; $PORT is replaced by the port
}

var stdio = serverTransport{name: "stdio"}

// everything is the reference server. legacy is the same server, also with HTTP+SSE.
var (
	everything = serverProgram{
		script:     "@modelcontextprotocol/server-everything/dist/index.js",
		transports: []serverTransport{stdio, {name: "http", path: "/mcp", args: []string{"streamableHttp"}}},
	}
	legacy = serverProgram{
		script:     everything.script,
		transports: append(everything.transports, serverTransport{name: "sse", path: "/sse", args: []string{"sse"}, transport: mcpbridge.TransportSSE}),
	}
)

// overEachTransport runs a scenario over each transport of a server, which is named "s".
func overEachTransport(t *testing.T, r serverProgram, cfg supervisor.Config, scenario func(h *harness)) {
	t.Helper()
	for _, at := range r.transports {
		t.Run(at.name, func(t *testing.T) {
			h := newHarness(t)
			h.start(cfg, h.serve("s", r, at))
			scenario(h)
		})
	}
}

// serve returns the configuration of a server. It starts the server if the transport is
// HTTP.
func (h *harness) serve(name string, r serverProgram, at serverTransport) mcpbridge.Server {
	h.t.Helper()
	script := installed(h.t, r.script)
	h.scripts = append(h.scripts, script)
	args := append([]string{script}, append(r.args, at.args...)...)
	env := map[string]string{"HOME": h.dir, "TMPDIR": h.dir}
	for name, value := range r.env {
		env[name] = value
	}
	if at.path == "" {
		return mcpbridge.Server{Name: name, Command: "node", Args: args, Env: env, Dir: h.dir}
	}
	return mcpbridge.Server{Name: name, URL: h.startRemote(args, env) + at.path, Transport: at.transport}
}

// installed returns the path of a script in node_modules.
func installed(t *testing.T, script string) string {
	t.Helper()
	return installedIn(t, ".", script)
}

// installedIn returns the path of a script in the node_modules of a folder.
func installedIn(t *testing.T, folder, script string) string {
	t.Helper()
	const hint = "run tests/real/install"
	_, err := exec.LookPath("node")
	require.NoError(t, err, hint)
	wanted, err := os.Stat(filepath.Join(folder, "package-lock.json"))
	require.NoError(t, err)
	found, err := os.Stat(filepath.Join(folder, "node_modules", ".package-lock.json"))
	require.NoError(t, err, hint)
	require.False(t, found.ModTime().Before(wanted.ModTime()), "node_modules is older than package-lock.json: "+hint)
	path, err := filepath.Abs(filepath.Join(folder, "node_modules", script))
	require.NoError(t, err)
	require.FileExists(t, path, hint)
	return path
}

// servers returns the processes of the servers.
func (h *harness) servers() (all []process) {
	for _, p := range ownDescendants() {
		for _, script := range h.scripts {
			if p.parent == os.Getpid() && strings.Contains(p.args, script) {
				all = append(all, p)
			}
		}
	}
	return all
}

// startedByServers returns the descendants of the servers.
func (h *harness) startedByServers() (all []process) {
	for _, p := range h.servers() {
		all = append(all, descendants(p.pid)...)
	}
	return all
}

// killServers kills the servers, and waits for their end.
func (h *harness) killServers() {
	h.t.Helper()
	victims := h.servers()
	require.NotEmpty(h.t, victims)
	for _, p := range victims {
		require.NoError(h.t, syscall.Kill(p.pid, syscall.SIGKILL))
	}
	h.eventually("the servers are gone", func() bool { return allEnded(victims) })
}

// restartServers starts the servers over HTTP again. The supervisor starts the others.
func (h *harness) restartServers() {
	h.t.Helper()
	for _, r := range h.remotes {
		r.start()
	}
}
