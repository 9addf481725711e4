package main

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/stretchr/testify/require"
)

// drawn returns the lines of the screen of a show, as a terminal of that size shows them.
func drawn(agents, width, height int) []string {
	s := &show{showCmd: &showCmd{Agents: agents, MaxSessions: 300}, verifier: newVerifier(), statuses: make([]atomic.Int32, agents)}
	v := newScreen(s, nil)
	v.Update(tea.WindowSizeMsg{Width: width, Height: height})
	for i := range 2 * height {
		v.note(true, fmt.Sprintf("note %d %s", i, strings.Repeat("x", 100)))
	}
	return strings.Split(ansi.Strip(v.View().Content), "\n")
}

func TestScreenFitsIntoTheTerminalWithItsCounters(t *testing.T) {
	for _, agents := range []int{3, 36, 100, 1000} {
		for _, size := range [][2]int{{80, 24}, {84, 24}, {120, 40}, {60, 20}, {40, 12}} {
			name := fmt.Sprintf("%d agents at %dx%d", agents, size[0], size[1])
			lines := drawn(agents, size[0], size[1])
			require.LessOrEqual(t, len(lines), size[1], name)
			for _, line := range lines {
				require.LessOrEqual(t, ansi.StringWidth(line), size[0], "%s: %s", name, line)
			}
			text := strings.Join(lines, "\n")
			require.Contains(t, text, "0 calls  0 answered  0 replayed", name)
			require.Contains(t, text, "● answered   ◌ waiting", name)
			require.Contains(t, text, fmt.Sprintf("note %d", 2*size[1]-1), "%s: the last note", name)
			require.GreaterOrEqual(t, strings.Count(text, "note "), minFaults, name)
		}
	}
}

func TestScreenShowsEachOf1000AgentsAt80x24(t *testing.T) {
	text := strings.Join(drawn(1000, 80, 24), "\n")
	require.Equal(t, 1000+1, strings.Count(text, "●"), "and one in the legend")
	require.Contains(t, text, "0/300 sessions")
	require.NotContains(t, text, "agents more")
}

func TestScreenShowsTheAddressOfThePage(t *testing.T) {
	s := &show{showCmd: &showCmd{}, verifier: newVerifier(), page: "http://127.0.0.1:8080/debug/mcp/"}
	require.Contains(t, newScreen(s, nil).View().Content, s.page)
}

func TestScreenSaysHowManyAgentsItLeavesOut(t *testing.T) {
	lines := drawn(1000, 40, 12)
	require.Contains(t, strings.Join(lines, "\n"), "and 960 agents more")
	require.Equal(t, 40, strings.Count(lines[2], "●"))
}
