//go:build packages

package packages

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// limit bounds what a test waits for.
const limit = time.Minute

// registry is a registry of npm that has our packages, and gets others from that of this machine.
func registry(t *testing.T) (address string) {
	t.Helper()
	address, folder := freeAddress(t), t.TempDir()
	config := filepath.Join(folder, "verdaccio.yaml")
	require.NoError(t, os.WriteFile(config, fmt.Appendf(nil, `
storage: %s
auth: {htpasswd: {file: %[1]s/htpasswd}}
uplinks: {upstream: {url: %q}}
packages:
  mcpactor: {access: $all, publish: $all}
  '@mcpactor/*': {access: $all, publish: $all}
  '**': {access: $all, proxy: upstream}
max_body_size: 100mb
log: {type: stdout, level: warn}
`, folder, strings.TrimSpace(execute(t, "npm", "config", "get", "registry"))), 0o644))
	verdaccio := exec.Command("node", "node_modules/.bin/verdaccio", "--config", config, "--listen", address)
	require.NoError(t, verdaccio.Start())
	t.Cleanup(func() { verdaccio.Process.Kill(); verdaccio.Wait() })
	require.Eventually(t, func() bool {
		response, err := http.Get("http://" + address + "/-/ping")
		if err == nil {
			response.Body.Close()
		}
		return err == nil
	}, limit, 50*time.Millisecond)
	m := newMachine(t, address, "")
	packages, err := filepath.Glob(file("npm/*.tgz"))
	require.NoError(t, err)
	for _, path := range packages {
		said, status := m.runs(t, "npm", "publish", "--tag=latest", path)
		require.Zero(t, status, said)
	}
	return address
}

// machine is a place with Node and npm, whose cache is empty, and without Go.
type machine struct {
	home string
	env  []string
}

// newMachine returns a machine with a Node: a program, or "" for the one on the PATH.
func newMachine(t *testing.T, registry, node string) *machine {
	t.Helper()
	home := t.TempDir()
	bin := filepath.Join(home, "bin")
	require.NoError(t, os.Mkdir(bin, 0o755))
	for _, name := range []string{"node", "npm", "npx", "sh"} {
		path, err := exec.LookPath(name)
		require.NoError(t, err)
		if name == "node" && node != "" {
			path, err = filepath.Abs(node)
			require.NoError(t, err)
		}
		require.NoError(t, os.Symlink(path, filepath.Join(bin, name)))
	}
	return &machine{home: home, env: []string{
		"PATH=" + bin, "HOME=" + home, "npm_config_cache=" + filepath.Join(home, "cache"), "npm_config_update_notifier=false",
		"npm_config_registry=http://" + registry, "npm_config_//" + registry + "/:_authToken=none",
	}}
}

func (m *machine) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(m.home, "bin", name), args...)
	cmd.Dir, cmd.Env = m.home, m.env
	return cmd
}

// runs returns what a command says, and its status.
func (m *machine) runs(t *testing.T, name string, args ...string) (said string, status int) {
	t.Helper()
	cmd := m.command(name, args...)
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		require.NoError(t, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// processes are those of the machine, with their command lines.
func (m *machine) processes() map[int]string {
	found := map[int]string{}
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		environment, _ := os.ReadFile(path)
		line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && strings.Contains(string(environment), "HOME="+m.home+"\x00") && len(line) > 0 {
			found[pid] = strings.ReplaceAll(string(line), "\x00", " ")
		}
	}
	return found
}

// find returns the process whose command line contains some text.
func (m *machine) find(t *testing.T, text string) int {
	t.Helper()
	for pid, line := range m.processes() {
		if strings.Contains(line, text) {
			return pid
		}
	}
	require.Fail(t, "no such process", "%s in %v", text, m.processes())
	return 0
}

// serve runs the line of the README, and calls a tool.
func (m *machine) serve(t *testing.T) (*mcp.ClientSession, *exec.Cmd) {
	t.Helper()
	words := []string{"npx", "-y", "mcpactor", "serve", "--", "npx", "-y", "@modelcontextprotocol/server-memory"}
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.Contains(t, string(readme), "\n"+strings.Join(words, " ")+" ")
	cmd := m.command(words[0], words[1:]...)
	ctx, cancel := context.WithTimeout(t.Context(), 2*limit)
	defer cancel()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
	require.NoError(t, err)
	t.Cleanup(func() { session.Close() })
	result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "read_graph"})
	require.NoError(t, err)
	require.False(t, result.IsError)
	return session, cmd
}

// nodes are the Node of this machine, which has the program as a child, and one that becomes the program, with a part of the command line of
// the launcher.
var nodes = map[string]struct{ path, launcher string }{
	"node":       {"", ".bin/mcpactor serve"},
	"newer node": {"node_modules/.bin/node", "node_modules/@mcpactor/"},
}

// The line of the README works with an empty cache, without Go. Whatever a client kills before it closes the input, nothing is left.
func TestNpxServesAndLeavesNothing(t *testing.T) {
	address := registry(t)
	for name, node := range nodes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, address, node.path)
			_, status := m.runs(t, "sh", "-c", "command -v go")
			require.NotZero(t, status, "Go is on the PATH")
			for _, kill := range []struct {
				what   string
				npx    bool
				signal syscall.Signal
			}{
				{"nothing is killed", true, 0},
				{"npx gets SIGTERM", true, syscall.SIGTERM},
				{"npx is killed", true, syscall.SIGKILL},
				{"the launcher gets SIGTERM", false, syscall.SIGTERM},
				{"the launcher is killed", false, syscall.SIGKILL},
			} {
				t.Run(kill.what, func(t *testing.T) {
					session, npx := m.serve(t)
					pid := npx.Process.Pid
					if !kill.npx {
						pid = m.find(t, node.launcher)
					}
					require.NoError(t, syscall.Kill(pid, kill.signal)) // 0 is none
					if kill.npx || kill.signal != syscall.SIGTERM {    // else it ends by itself
						session.Close()
					}
					require.Eventually(t, func() bool { return len(m.processes()) == 0 }, 20*time.Second, 20*time.Millisecond, "%v", m.processes())
				})
			}
			said, status := m.runs(t, "npx", "-y", "mcpactor", "version")
			require.Contains(t, said, version(t))
			require.NotContains(t, said, "Warning")
			require.Zero(t, status, said)
			said, status = m.runs(t, "npx", "-y", "mcpactor", "serve")
			require.Equal(t, 2, status, said)
		})
	}
	t.Run("the program is killed", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t, address, "")
		said, status := m.runs(t, "npm", "install", "mcpactor")
		require.Zero(t, status, said)
		cmd := m.command("node", "node_modules/mcpactor/mcpactor.js", "serve", "http://127.0.0.1:1/mcp")
		input, err := cmd.StdinPipe()
		require.NoError(t, err)
		defer input.Close()
		require.NoError(t, cmd.Start())
		require.Eventually(t, func() bool { return len(m.processes()) == 2 }, limit, 10*time.Millisecond)
		require.NoError(t, syscall.Kill(m.find(t, "node_modules/@mcpactor/"), syscall.SIGKILL))
		cmd.Wait()
		require.Equal(t, syscall.SIGKILL, cmd.ProcessState.Sys().(syscall.WaitStatus).Signal())
	})
	t.Run("the program is missing", func(t *testing.T) {
		t.Parallel()
		m := newMachine(t, address, "")
		said, status := m.runs(t, "npm", "install", "--omit=optional", "mcpactor")
		require.Zero(t, status, said)
		said, status = m.runs(t, "node", "node_modules/mcpactor/mcpactor.js", "version")
		require.Equal(t, 2, status)
		require.Contains(t, said, "is missing: install mcpactor again on this machine, without --omit=optional")
	})
}
