//go:build real && claude

package real

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newClaude returns somebody who tries Claude Code, without a login.
func newClaude(h *harness) *newcomer {
	h.t.Helper()
	programs, err := filepath.Abs("claude/node_modules/.bin")
	require.NoError(h.t, err)
	require.FileExists(h.t, filepath.Join(programs, "claude"), "run tests/real/claude/install")
	n := newNewcomer(h, programs)
	n.env = append(n.env, "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_AUTOUPDATER=1")
	return n
}

// listed returns what Claude Code says of a server: it starts the server, and lists its tools.
func (n *newcomer) listed(server string) string {
	n.t.Helper()
	said, _ := n.tries("claude mcp list", n.dir)
	for line := range strings.Lines(said) {
		if strings.HasPrefix(line, server+": ") {
			_, state, _ := strings.Cut(line, " - ")
			return strings.TrimSpace(state)
		}
	}
	require.Fail(n.t, "it is not listed", "%s", said)
	return ""
}

// Claude Code waits 30 s for initialize. In front of servers that take so long it connects where it does without mcpactor serve, at the
// first use and later. Where it does not, the start of the server ends with it.
func TestClaudeCodeConnectsWhereItDoesWithoutServe(t *testing.T) {
	const connected = "✔ Connected"
	for _, delay := range []time.Duration{2 * time.Second, 9 * time.Second, 25 * time.Second, 40 * time.Second} {
		for way, before := range map[string]string{"without": "", "serve": "mcpactor serve -- "} {
			t.Run(delay.String()+"/"+way, func(t *testing.T) {
				h := newHarness(t)
				n := newClaude(h)
				slow := h.serve("s", slowLedger(delay, filepath.Join(h.dir, "ledger")), stdio)
				said, status := n.tries("claude mcp add slow -- "+before+slow.Command+" "+strings.Join(slow.Args, " "), h.dir)
				require.Zero(t, status, said)
				for range 2 {
					if state := n.listed("slow"); delay < 30*time.Second {
						require.Equal(t, connected, state)
					} else {
						require.Contains(t, state, "Failed to connect")
					}
					h.limit = time.Now().Add(5 * time.Second)
					require.NoError(t, h.killLeftProcesses(), "the start ends with the client")
				}
			})
		}
	}
}

// The lines of the README for Claude Code do what they say, as they stand: npx downloads the server while Claude Code waits.
func TestClaudeCodeDoesWhatTheReadmeSays(t *testing.T) {
	h := newHarness(t)
	n := newClaude(h)
	n.env = append(n.env, "HTTPS_PROXY=")
	tried := 0
	for _, line := range linesToTry(t) {
		if !strings.HasPrefix(line, "claude ") {
			continue
		}
		said, status := n.tries(line, h.dir)
		require.Zero(t, status, said)
		require.Equal(t, "✔ Connected", n.listed(strings.Fields(line)[3]), line)
		tried++
	}
	require.Positive(t, tried)
}
