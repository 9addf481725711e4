package commands

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/handleguess"
)

var update = flag.Bool("update", false, "write the files of testdata")

// screens are the outputs for which testdata has what is shown.
var screens = map[string]cli.Screen{
	"pipe":         {},
	"60":           {Width: 60, Signs: true, Colors: true},
	"120":          {Width: 120, Signs: true, Colors: true},
	"60-no-color":  {Width: 60, Signs: true},
	"120-no-color": {Width: 120, Signs: true},
	"60-dumb":      {Width: 60},
}

// requireShown compares what a screen shows with the file that has it.
func requireShown(t *testing.T, name, shown string) {
	t.Helper()
	path := filepath.Join("testdata", "screens", name+".txt")
	shown = strings.ReplaceAll(shown, "\x1b", "␛")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(shown), 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), shown)
}

func TestReportOnEachScreen(t *testing.T) {
	guesses := []handleguess.Guess{
		{Mint: "start_process", Release: "force_terminate", Argument: "pid", Instead: []string{"kill_process"}, Lists: []string{"list_processes", "list_sessions"}},
		{Mint: "open_cursor", Path: "cursor.id", Release: "close_cursor", Argument: "cursor_id"},
	}
	all := []*diagnosis{
		{Server: "memory", Works: true, Elapsed: "120ms", Tools: 9, Implementation: &mcp.Implementation{Name: "memory-\x1b[2Jserver", Version: "0.6.3"}, ProtocolVersion: "2025-06-18", LoggedIn: true},
		{Server: "datenbank-f-r-k-ln", Works: true, Elapsed: "2.25s", Tools: 1, ProtocolVersion: "2025-11-25", Handles: guesses, Warnings: []string{"its name in the file is \"datenbank für köln\": a name has only the letters A to Z", "args: docker run has no --rm: add it"}},
		{
			Server: "broken", Elapsed: "940ms",
			Error: "unavailable: the server process exited with status 1: Error: the configuration file /home/ada/.config/some-server/config.production.json could not be read because it does not exist",
			Next:  "check its command, arguments and environment: it ended before it spoke MCP",
		},
		{Server: "down", Elapsed: "10ms", Error: "unavailable: connection refused", Next: "check that it runs, and its URL"},
		{Server: "wide", Elapsed: "10ms", Error: "unavailable: 服务器 无法 启动 因为 缺少 必要 的 环境 变量 请 检查 您 的 配置 文件 并 设置 正确 的 值 然后 再 试 一次", Next: ""},
		{Server: "lacks", Error: `mcp.json:12: mcpServers.lacks.env.T: the environment variable T is not set: set it, or write ${T:-default}; the server is left out`},
	}
	for name, s := range screens {
		requireShown(t, "doctor-"+name, report(all, s)+proposals(all, s))
	}
}

func TestToolsOnEachScreen(t *testing.T) {
	tools := []toolEntry{
		{Name: "memory__add_observations", Title: "Add Observations"},
		{Name: "memory__search_nodes", Description: "Search for nodes in the knowledge graph, by a query that is matched against names and types\nand observations."},
		{Name: "a_server_with_a_long_name__and_a_tool_with_a_long_name", Title: "Long"},
	}
	described := []toolEntry{{
		Name: "memory__search_nodes", Title: "Search Nodes", Description: "Search for nodes in the knowledge graph, by a query that is matched against names, types and observations.",
		InputSchema: map[string]any{"required": []string{"query"}, "properties": map[string]any{"query": map[string]any{"type": "string", "description": "The query that is matched against names, types and the content of observations"}}},
	}}
	for name, s := range screens {
		var out strings.Builder
		require.NoError(t, (&ToolList{Tools: tools}).table(&out, s))
		out.WriteString("\n")
		require.NoError(t, words(&out, s, described))
		requireShown(t, "tools-"+name, out.String())
	}
}

// Nothing is wider than the screen, except for words that are.
func TestLinesBreakAtWords(t *testing.T) {
	for name, s := range screens {
		for _, command := range []string{"doctor-", "tools-"} {
			shown, err := os.ReadFile(filepath.Join("testdata", "screens", command+name+".txt"))
			require.NoError(t, err)
			plain := ansi.Strip(strings.ReplaceAll(string(shown), "␛", "\x1b"))
			for line := range strings.Lines(plain) {
				if s.Width > 0 && ansi.StringWidth(strings.TrimSuffix(line, "\n")) > s.Width {
					require.Len(t, strings.Fields(line), 1, line)
				}
			}
			require.Equal(t, s.Colors, strings.Contains(string(shown), "␛"))
			require.Equal(t, s.Signs && command == "doctor-", strings.Contains(plain, "✓"))
		}
	}
}
