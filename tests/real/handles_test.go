//go:build real

package real

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/internal/freeport"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor"
)

// declared returns what docs/handles.md declares for a server, of the version that is installed.
func declared(t *testing.T, server string) []mcpbridge.Handle {
	t.Helper()
	page, err := os.ReadFile("../../docs/handles.md")
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(page), "```json\n")
	block, _, _ := strings.Cut(rest, "```")
	file, err := config.Loader{}.Parse([]byte(block))
	require.NoError(t, err)
	for _, s := range file.Supervisor.Servers {
		if s.Name == server {
			name, version, _ := strings.Cut(s.Args[1][1:], "@") // the name may begin with an at sign
			installed, err := os.ReadFile("handles/package.json")
			require.NoError(t, err)
			require.Contains(t, string(installed), fmt.Sprintf(`%s": %q`, name, version))
			return s.Handles
		}
	}
	require.Fail(t, "the page declares nothing for "+server)
	return nil
}

// shared is a server that three conversations share, and that has handles.
type shared struct {
	name   string
	server mcpbridge.Server
	mint   func(scope string) *messages.CallTool
	alive  func() int // how many handles there are
}

// behindProxy returns a server that is one process for all sessions, behind mcp-proxy.
func (h *harness) behindProxy(command ...string) mcpbridge.Server {
	h.t.Helper()
	args := append([]string{"--port", "$PORT", "--host", "127.0.0.1", "--server", "stream", "--"}, command...)
	return h.serve("s", serverProgram{script: "mcp-proxy/dist/bin/mcp-proxy.mjs", args: args, env: map[string]string{
		"DC_FLAG_URL": "http://127.0.0.1:9", "CHROME_DEVTOOLS_MCP_NO_USAGE_STATISTICS": "1", "CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS": "1",
	}}, serverTransport{path: "/mcp"})
}

// Commander starts processes. It says nothing to anybody else.
func (h *harness) commander() shared {
	h.t.Helper()
	config := filepath.Join(h.dir, ".claude-server-commander")
	require.NoError(h.t, os.MkdirAll(config, 0o700))
	quiet := []byte(`{"telemetryEnabled": false, "pendingWelcomeOnboarding": false, "welcomeOnboardingEligible": false}`)
	require.NoError(h.t, os.WriteFile(filepath.Join(config, "config.json"), quiet, 0o600))
	script := installedIn(h.t, "handles", "@wonderwhy-er/desktop-commander/dist/index.js")
	command := "sleep 1000." + filepath.Base(h.dir)[len("real"):] // no other one
	h.t.Cleanup(func() { h.endChildren(script, command) })
	return shared{
		name: "commander", server: h.behindProxy("node", script),
		mint: func(scope string) *messages.CallTool {
			return call(scope, "start_process", arguments{"command": "exec " + command, "timeout_ms": 100})
		},
		alive: func() (n int) {
			for _, p := range ownDescendants() {
				if p.args == command {
					n++
				}
			}
			return n
		},
	}
}

// chrome opens pages in a Chromium that runs.
func (h *harness) chrome() shared {
	h.t.Helper()
	address, err := freeport.Addr("127.0.0.1")
	require.NoError(h.t, err)
	chromium, err := exec.LookPath("chromium")
	require.NoError(h.t, err, "run tests/real/install")
	_, port, _ := strings.Cut(address, ":")
	browser := &remote{h: h, program: chromium, address: address, output: filepath.Join(h.dir, "browser.output"), args: []string{
		"--headless", "--no-sandbox", "--no-first-run", "--remote-debugging-port=" + port, "--user-data-dir=" + filepath.Join(h.dir, "profile"), "about:blank",
	}}
	h.fronts = append(h.fronts, browser)
	browser.start()
	h.atEnd(browser.stop) // and with it its processes
	pages := func() (n int) {
		var targets []struct{ Type string }
		transport := &http.Transport{DisableKeepAlives: true}
		resp, err := (&http.Client{Transport: transport}).Get("http://" + address + "/json/list")
		require.NoError(h.t, err)
		defer resp.Body.Close()
		require.NoError(h.t, json.NewDecoder(resp.Body).Decode(&targets))
		for _, target := range targets {
			if target.Type == "page" {
				n++
			}
		}
		return n
	}
	h.eventually("the browser has a page", func() bool { return pages() == 1 })
	script := installedIn(h.t, "handles", "chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js")
	h.t.Cleanup(func() { h.endChildren("chrome-devtools-mcp") }) // which is its title as well
	return shared{
		name: "chrome", server: h.behindProxy("node", script, "--browserUrl", "http://"+address),
		mint:  func(scope string) *messages.CallTool { return call(scope, "new_page", arguments{"url": "about:blank"}) },
		alive: func() int { return pages() - 1 },
	}
}

// Three conversations share a server, and each has two of its handles. When one ends, so do its handles, if they are declared.
func TestHandlesOfOneServerEndWithTheirConversations(t *testing.T) {
	inScopes := conversations{
		mint: func(op *messages.CallTool, conversation string) { op.Key.Scope = conversation },
		end: func(h *harness, conversation string) []messages.Left {
			closed, is := h.send(&messages.CloseScope{Scope: conversation}).reply().(*messages.Closed)
			require.True(h.t, is)
			return closed.Left
		},
	}
	inOneScope := conversations{
		mint: func(op *messages.CallTool, conversation string) {
			op.Attributes = messages.NewAttributes(map[string]string{messages.HolderAttribute: conversation})
		},
		end: func(h *harness, conversation string) []messages.Left {
			released, is := h.send(&messages.ReleaseHandles{Scope: "shared", Holder: conversation}).reply().(*messages.HandlesReleased)
			require.True(h.t, is)
			require.Equal(h.t, 2, released.Released)
			return released.Left
		},
	}
	commander, chrome := (*harness).commander, (*harness).chrome
	for _, c := range []struct {
		name       string
		on         func(*harness) shared
		isDeclared bool
		are        conversations
		alive      []int // after each end
	}{
		{"commander, not declared", commander, false, inScopes, []int{6, 6, 6}},
		{"commander", commander, true, inScopes, []int{4, 2, 0}},
		{"commander, in one scope", commander, true, inOneScope, []int{4, 2, 0}},
		{"chrome, not declared", chrome, false, inScopes, []int{6, 6, 6}},
		{"chrome", chrome, true, inScopes, []int{4, 2, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHarness(t)
			s := c.on(h)
			if c.isDeclared {
				s.server.Handles = declared(t, s.name)
			}
			h.start(supervisor.Config{}, s.server)
			for range 2 {
				for _, conversation := range scopes[:3] {
					op := s.mint("shared")
					c.are.mint(op, conversation)
					h.send(op).ok(1)
				}
			}
			require.Equal(t, 6, s.alive())
			for i, conversation := range scopes[:3] {
				require.Empty(t, c.are.end(h, conversation))
				h.eventually(fmt.Sprintf("%d are alive", c.alive[i]), func() bool { return s.alive() == c.alive[i] })
			}
		})
	}
}

// conversations mint handles, and end.
type conversations struct {
	mint func(op *messages.CallTool, conversation string)
	end  func(h *harness, conversation string) []messages.Left
}
