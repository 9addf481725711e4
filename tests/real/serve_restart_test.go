//go:build real

package real

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

const langchain = "langchain"

// listeningClients are clients over HTTP that do not initialize again when their session is unknown.
var listeningClients = map[string]func(*harness, target) otherClient{
	"typescript":   otherClients["typescript"],
	"typescript 2": otherClients["typescript 2"],
	"ai-sdk":       func(h *harness, to target) otherClient { return startFramework(h, "ai-sdk", to) },
	langchain:      func(h *harness, to target) otherClient { return startFramework(h, langchain, to) },
	"mcp-remote": func(h *harness, to target) otherClient { // a program that a client over stdio starts
		proxy := target{command: []string{"node", installed(h.t, "mcp-remote/dist/proxy.js"), to.url, "--allow-http", "--transport", "http-only"}, env: map[string]string{"MCP_REMOTE_CONFIG_DIR": h.dir}}
		return startTypeScript(h, 1, 1, proxy)[0]
	},
}

// startFramework starts a client of a framework for agents.
func startFramework(h *harness, framework string, to target) otherClient {
	h.t.Helper()
	return startClients(h, []string{newerNode(h.t), installed(h.t, "../clients/frameworks.mjs")}, map[string]any{"framework": framework}, 1, to)[0]
}

// mcpactor serve --listen is killed and started again, as at an upgrade. Its clients go on, with the sessions that they have on a
// server over HTTP. A process that was lost with its state is told of, in the text of the result. Of a call that was under way it is
// told that it may have run. With -short, one server has all clients.
func TestRestartOfServeEndsNoClient(t *testing.T) {
	for name, at := range map[string]serverTransport{"stdio": ledger.transports[0], "http": ledger.transports[1]} {
		for kind, connect := range listeningClients {
			if testing.Short() && name != "stdio" {
				continue
			}
			t.Run(name+"/"+kind, func(t *testing.T) {
				h := newHarness(t)
				file := filepath.Join(h.dir, "ledger")
				to := h.listenedWithStore(h.serve("s", ledgerInto(file), at))
				c := connect(h, to)
				write := func(entry string) string {
					said, isError := c.call("write", arguments{"entry": entry, "before": 0, "after": 0})
					require.False(t, isError, said)
					require.Contains(t, said, entry)
					require.False(t, kind == langchain && said[0] == '[', "it returns a text for a result with one text")
					return said
				}
				write("first")
				for range 2 {
					h.restartServe(shortly)
					if said := write("second"); name == "stdio" {
						require.Contains(t, said, "has a new session")
					} else {
						require.NotContains(t, said, "has a new session", "it is the same session")
					}
					require.NotContains(t, write("third"), "has a new session")
				}
				if kind == "ai-sdk" || kind == langchain {
					return
				}
				away := shortly
				if name == "stdio" {
					away = 4 * time.Second // clients try to resume a call twice
				}
				told := make(chan string, 1)
				go func() {
					// It waits for a second: a call whose response has not begun cannot be resumed.
					said, _ := c.call("write", arguments{"entry": "fourth", "before": 1000, "after": 5000})
					told <- said
				}()
				h.eventually("the call runs", func() bool {
					written, _ := os.ReadFile(file)
					return strings.HasSuffix(string(written), "fourth\n")
				})
				h.restartServe(away)
				if said := <-told; kind != "typescript 2" { // with protocol 2026-07-28 the response is lost: nobody can ask for it again
					require.Contains(t, said, "The request may have run")
				}
				write("fifth")
				written, err := os.ReadFile(file)
				require.NoError(t, err)
				require.Equal(t, "first\nsecond\nthird\nsecond\nthird\nfourth\nfifth\n", string(written))
			})
		}
	}
}

// listenedWithStore starts mcpactor serve as listened does, with a store.
func (h *harness) listenedWithStore(server mcpbridge.Server) target {
	h.t.Helper()
	to := h.listened(server)
	front := h.fronts[len(h.fronts)-1]
	front.cmd.Process.Kill()
	front.env = append(front.env, "XDG_CACHE_HOME="+filepath.Join(h.dir, "cache"))
	for i, arg := range front.args {
		if arg == "--no-cache" {
			front.args = append(front.args[:i:i], front.args[i+1:]...)
			break
		}
	}
	front.start()
	h.atEnd(func() { front.cmd.Process.Kill() }) // some clients do not say that they leave, so that it would keep their servers
	return to
}

// shortly is how long mcpactor serve is away in most restarts.
const shortly = 100 * time.Millisecond

// restartServe kills mcpactor serve, and starts it again after a time.
func (h *harness) restartServe(away time.Duration) {
	h.t.Helper()
	front := h.fronts[len(h.fronts)-1]
	require.NoError(h.t, front.cmd.Process.Signal(syscall.SIGKILL))
	<-front.done
	<-time.After(away)
	front.start()
}
