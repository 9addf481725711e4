//go:build real

package real

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// withBrowser runs a scenario on Playwright's server, named "s", over each transport, with
// a web site.
func withBrowser(t *testing.T, cfg supervisor.Config, scenario func(h *harness, s *site)) {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	require.NoError(t, err, "run tests/real/install")
	listen := []string{"--host", "127.0.0.1", "--port", "$PORT", "--allowed-hosts", "127.0.0.1:$PORT"}
	overEachTransport(t, serverProgram{
		script:     "@playwright/mcp/cli.js",
		args:       []string{"--headless", "--no-sandbox", "--isolated", "--executable-path", chromium},
		transports: []serverTransport{stdio, {name: "http", path: "/mcp", args: listen}},
	}, cfg, func(h *harness) { scenario(h, h.newSite()) })
}

// navigate returns a call that opens a page. It is not idempotent.
func navigate(scope, url string, opts ...func(*messages.CallTool)) *messages.CallTool {
	return call(scope, "browser_navigate", arguments{"url": url}, opts...)
}

// snapshot returns a call that returns the contents of the open page.
func snapshot(scope string) *messages.CallTool {
	return call(scope, "browser_snapshot", arguments{})
}

// evaluate returns a call that runs a function on the open page.
func evaluate(scope, function string) *messages.CallTool {
	return call(scope, "browser_evaluate", arguments{"function": function})
}

func TestPagesStayOpenAndScopesDoNotSeeEachOthers(t *testing.T) {
	withBrowser(t, supervisor.Config{}, func(h *harness, s *site) {
		a, b := h.send(navigate("a", s.URL+"/one")), h.send(navigate("b", s.URL+"/two"))
		a.ok(1)
		b.ok(1)
		h.send(evaluate("a", "() => { localStorage.kept = 'in a'; document.cookie = 'c=1'; window.here = 'still' }")).ok(1)
		require.Contains(t, h.send(evaluate("a", "() => [localStorage.kept, document.cookie, window.here].join()")).text(1), "in a,c=1,still")
		require.Contains(t, h.send(evaluate("b", "() => [localStorage.kept, document.cookie, window.here].join()")).text(1), `",,"`)
		require.Contains(t, h.send(snapshot("a")).text(1), "Welcome to /one")
		require.Contains(t, h.send(snapshot("b")).text(1), "Welcome to /two")
	})
}

func TestEvictionClosesTheBrowser(t *testing.T) {
	withBrowser(t, supervisor.Config{MaxSessions: 1}, func(h *harness, s *site) {
		h.send(navigate("a", s.URL+"/one")).ok(1)
		browser := h.startedByServers()
		require.NotEmpty(t, browser)
		h.send(navigate("b", s.URL+"/two")).ok(1)
		h.eventually("the browser is closed", func() bool { return allEnded(browser) })
		require.Equal(t, 1, countEvents[*messages.SessionEvicted](h))
		require.EqualValues(t, 2, h.ping("a"))
	})
}

func TestBrowserGoesWithItsServer(t *testing.T) {
	withBrowser(t, supervisor.Config{}, func(h *harness, s *site) {
		h.send(navigate("a", s.URL+"/one")).ok(1)
		browser := h.startedByServers()
		require.NotEmpty(t, browser)
		h.killServers()
		h.eventually("the browser is gone", func() bool { return allEnded(browser) })
		h.restartServers()
		require.NotContains(t, h.send(snapshot("a")).text(2), "Welcome")
		h.send(navigate("a", s.URL+"/two")).ok(2)
		require.Contains(t, h.send(snapshot("a")).text(2), "Welcome to /two")
	})
}

func TestPageThatLoadsWhenTheServerIsKilledIsLostOrLoadedAgain(t *testing.T) {
	withBrowser(t, supervisor.Config{}, func(h *harness, s *site) {
		plain := h.send(navigate("a", s.URL+"/wait/plain"))
		always := h.send(navigate("b", s.URL+"/wait/always", replay(messages.ReplayAlways)))
		h.eventually("both pages load", func() bool { return s.visits("/wait/plain") == 1 && s.visits("/wait/always") == 1 })
		h.killServers()
		s.release()
		h.restartServers()
		f := plain.fails(messages.CodeLost)
		require.True(t, f.MayHaveRun)
		require.False(t, f.Replayed)
		require.True(t, always.ok(2).Replayed)
		require.Contains(t, h.send(snapshot("b")).text(2), "Welcome to /wait/always")
		require.EqualValues(t, 2, h.ping("a"))
		require.Equal(t, 1, s.visits("/wait/plain"))
	})
}
