//go:build real

package real

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// browse runs a scenario on Playwright's server, "s", over each transport, with a
// site to look at.
func browse(t *testing.T, cfg supervisor.Config, scenario func(w *world, s *site)) {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	require.NoError(t, err, "run tests/real/install")
	listen := []string{"--host", "127.0.0.1", "--port", "$PORT", "--allowed-hosts", "127.0.0.1:$PORT"}
	each(t, recipe{
		script: "@playwright/mcp/cli.js",
		args:   []string{"--headless", "--no-sandbox", "--isolated", "--executable-path", chromium},
		ways:   []way{stdio, {name: "http", path: "/mcp", args: listen}},
	}, cfg, func(w *world) { scenario(w, w.newSite()) })
}

// visit is a call that opens a page; it is not idempotent.
func visit(scope, url string, opts ...func(*messages.CallTool)) *messages.CallTool {
	return call(scope, "browser_navigate", arguments{"url": url}, opts...)
}

// see is a call that tells what is on the page that is open.
func see(scope string) *messages.CallTool {
	return call(scope, "browser_snapshot", arguments{})
}

// evaluate is a call that runs a function on the page that is open.
func evaluate(scope, function string) *messages.CallTool {
	return call(scope, "browser_evaluate", arguments{"function": function})
}

func TestPagesStayOpenAndScopesDoNotSeeEachOthers(t *testing.T) {
	browse(t, supervisor.Config{}, func(w *world, s *site) {
		a, b := w.send(visit("a", s.URL+"/one")), w.send(visit("b", s.URL+"/two"))
		a.ok(1)
		b.ok(1)
		w.send(evaluate("a", "() => { localStorage.kept = 'in a'; document.cookie = 'c=1'; window.here = 'still' }")).ok(1)
		require.Contains(t, w.send(evaluate("a", "() => [localStorage.kept, document.cookie, window.here].join()")).text(1), "in a,c=1,still")
		require.Contains(t, w.send(evaluate("b", "() => [localStorage.kept, document.cookie, window.here].join()")).text(1), `",,"`)
		require.Contains(t, w.send(see("a")).text(1), "Welcome to /one")
		require.Contains(t, w.send(see("b")).text(1), "Welcome to /two")
	})
}

func TestEvictionClosesTheBrowser(t *testing.T) {
	browse(t, supervisor.Config{MaxSessions: 1}, func(w *world, s *site) {
		w.send(visit("a", s.URL+"/one")).ok(1)
		browser := w.below()
		require.NotEmpty(t, browser)
		w.send(visit("b", s.URL+"/two")).ok(1)
		w.until("the browser is closed", func() bool { return allGone(browser) })
		require.Equal(t, 1, count[*messages.SessionEvicted](w))
		require.EqualValues(t, 2, w.ping("a"))
	})
}

func TestBrowserGoesWithItsServer(t *testing.T) {
	browse(t, supervisor.Config{}, func(w *world, s *site) {
		w.send(visit("a", s.URL+"/one")).ok(1)
		browser := w.below()
		require.NotEmpty(t, browser)
		w.kill()
		w.until("the browser is gone", func() bool { return allGone(browser) })
		w.revive()
		require.NotContains(t, w.send(see("a")).text(2), "Welcome")
		w.send(visit("a", s.URL+"/two")).ok(2)
		require.Contains(t, w.send(see("a")).text(2), "Welcome to /two")
	})
}

func TestPageThatLoadsWhenTheServerIsKilledIsLostOrLoadedAgain(t *testing.T) {
	browse(t, supervisor.Config{}, func(w *world, s *site) {
		plain := w.send(visit("a", s.URL+"/wait/plain"))
		always := w.send(visit("b", s.URL+"/wait/always", replay(messages.ReplayAlways)))
		w.until("both pages load", func() bool { return s.visits("/wait/plain") == 1 && s.visits("/wait/always") == 1 })
		w.kill()
		s.release()
		w.revive()
		f := plain.fails(messages.CodeLost)
		require.True(t, f.MayHaveRun)
		require.False(t, f.Replayed)
		require.True(t, always.ok(2).Replayed)
		require.Contains(t, w.send(see("b")).text(2), "Welcome to /wait/always")
		require.EqualValues(t, 2, w.ping("a"))
		require.Equal(t, 1, s.visits("/wait/plain"))
	})
}
