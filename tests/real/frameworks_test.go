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

// child is a stdio server for gateways.
func child(t *testing.T) string { return installed(t, everything.script) }

// H-A6, H-B1 and H-B3: gateways and frameworks get ids of requests that are large
// numbers, answer each caller with its own, and are found again when they were killed
// and have forgotten their sessions.
func TestFrameworksAnswerEachCallerAndAreFoundAgain(t *testing.T) {
	for name, c := range map[string]struct {
		script     string
		at         way
		sessions   []string // scopes
		generation uint64   // after it was killed
	}{
		"supergateway over sse": {"supergateway/dist/index.js", way{path: "/sse", transport: mcpbridge.TransportSSE, args: []string{"--stdio", "node " + child(t), "--port", "$PORT"}}, scopes, 2},
		"supergateway": {"supergateway/dist/index.js", way{path: "/mcp", args: []string{
			"--stdio", "node " + child(t), "--port", "$PORT", "--outputTransport", "streamableHttp", "--stateful",
		}}, scopes, 2},
		"mcp-proxy":          {"mcp-proxy/dist/bin/mcp-proxy.mjs", way{path: "/mcp", args: []string{"--port", "$PORT", "--host", "127.0.0.1", "--", "node", child(t)}}, scopes, 1}, // protocol 2026-07-28 has no sessions
		"mcp-proxy over sse": {"mcp-proxy/dist/bin/mcp-proxy.mjs", way{path: "/sse", transport: mcpbridge.TransportSSE, args: []string{"--port", "$PORT", "--host", "127.0.0.1", "--", "node", child(t)}}, scopes, 2},
		"mcp-framework":      {"../servers/framework.mjs", way{path: "/mcp"}, scopes, 2},
		"hono":               {"../servers/hono.mjs", way{path: "/mcp"}, scopes[:1], 2},
		"mcp-lite":           {"../servers/lite.mjs", way{path: "/mcp"}, scopes, 1}, // it serves any session
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			t.Cleanup(w.endChildren)
			w.start(supervisor.Config{}, w.serve("s", recipe{script: c.script}, c.at))
			w.echoes(c.sessions, 1)
			w.kill()
			w.revive()
			w.echoes(c.sessions, c.generation)
		})
	}
}

var scopes = []string{"a", "b", "c", "d"}

// echoes calls in each scope ten times at once, and looks whose answers come.
func (w *world) echoes(scopes []string, generation uint64) {
	w.t.Helper()
	calls := map[string]*pending{}
	for _, scope := range scopes {
		for i := range 10 {
			word := fmt.Sprint(scope, i)
			calls[word] = w.send(call(scope, echo, arguments{"message": word}))
		}
	}
	for word, p := range calls {
		require.Contains(w.t, p.text(generation), "Echo: "+word)
	}
}

// endChildren ends what gateways have started, which may outlive them.
func (w *world) endChildren() {
	if err := w.stop(); err != nil {
		w.t.Error(err)
	}
	for _, p := range ours() {
		if strings.Contains(p.args, everything.script) && !slices.ContainsFunc(w.remotes, func(r *remote) bool { return r.pid() == p.pid }) {
			syscall.Kill(p.pid, syscall.SIGKILL)
		}
	}
}
