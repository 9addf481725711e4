//go:build real

package real

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/supervisor"
)

// everythingScript returns the script of the stdio server that gateways start.
func everythingScript(t *testing.T) string { return installed(t, everything.script) }

// H-A6, H-B1, H-B3: gateways and frameworks accept request ids that are large numbers, and
// answer each caller. When they were killed, and do not know their sessions any more, the
// sessions are rebuilt.
func TestFrameworksAnswerEachCallerAndAreFoundAgain(t *testing.T) {
	for name, c := range map[string]struct {
		script     string
		at         serverTransport
		sessions   []string // scopes
		generation uint64   // after the server was killed
	}{
		"supergateway over sse": {"supergateway/dist/index.js", serverTransport{path: "/sse", transport: mcpbridge.TransportSSE, args: []string{"--stdio", "node " + everythingScript(t), "--port", "$PORT"}}, scopes, 2},
		"supergateway": {"supergateway/dist/index.js", serverTransport{path: "/mcp", args: []string{
			"--stdio", "node " + everythingScript(t), "--port", "$PORT", "--outputTransport", "streamableHttp", "--stateful",
		}}, scopes, 2},
		"mcp-proxy":          {"mcp-proxy/dist/bin/mcp-proxy.mjs", serverTransport{path: "/mcp", args: []string{"--port", "$PORT", "--host", "127.0.0.1", "--", "node", everythingScript(t)}}, scopes, 1}, // protocol 2026-07-28 has no sessions
		"mcp-proxy over sse": {"mcp-proxy/dist/bin/mcp-proxy.mjs", serverTransport{path: "/sse", transport: mcpbridge.TransportSSE, args: []string{"--port", "$PORT", "--host", "127.0.0.1", "--", "node", everythingScript(t)}}, scopes, 2},
		"mcp-framework":      {"../servers/framework.mjs", serverTransport{path: "/mcp"}, scopes, 2},
		"hono":               {"../servers/hono.mjs", serverTransport{path: "/mcp"}, scopes[:1], 2},
		"mcp-lite":           {"../servers/lite.mjs", serverTransport{path: "/mcp"}, scopes, 1}, // it serves unknown sessions too
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t)
			t.Cleanup(func() { h.endChildren(everything.script) })
			h.start(supervisor.Config{}, h.serve("s", serverProgram{script: c.script}, c.at))
			h.requireEchoes(c.sessions, 1)
			h.killServers()
			h.restartServers()
			h.requireEchoes(c.sessions, c.generation)
		})
	}
}

var scopes = []string{"a", "b", "c", "d"}

// requireEchoes sends ten calls at once in each scope, and checks that each gets its own
// answer.
func (h *harness) requireEchoes(scopes []string, generation uint64) {
	h.t.Helper()
	calls := map[string]*sentCommand{}
	for _, scope := range scopes {
		for i := range 10 {
			word := fmt.Sprint(scope, i)
			calls[word] = h.send(call(scope, echo, arguments{"message": word}))
		}
	}
	for word, p := range calls {
		require.Contains(h.t, p.text(generation), "Echo: "+word)
	}
}

// endChildren kills the processes that gateways have started, because they may outlive the
// gateways. Their arguments contain one of these.
func (h *harness) endChildren(args ...string) {
	if err := h.stop(); err != nil {
		h.t.Error(err)
	}
	for _, p := range ownDescendants() {
		isOne := slices.ContainsFunc(args, func(arg string) bool { return strings.Contains(p.args, arg) })
		if isOne && !slices.ContainsFunc(h.remotes, func(r *remote) bool { return r.pid() == p.pid }) {
			syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
}
