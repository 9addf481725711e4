package commands

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/handleguess"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
)

func TestDoctorProposesHandlesThatAreNotDeclared(t *testing.T) {
	server := servertest.NewTools("open_browser", "open_tab", "list_browsers")
	for name, argument := range map[string]string{"close_browser": "browser_id", "close_tab": "tab_id"} {
		servertest.AddTool(server, &mcp.Tool{Name: name, InputSchema: json.RawMessage(fmt.Sprintf(
			`{"type": "object", "properties": {%q: {"type": "string"}}, "required": [%[1]q]}`, argument))})
	}
	url := servertest.Serve(t, server)
	doctor := func(entry string, flags ...string) string {
		config := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"one": {"url": %q, %s}}}`, url, entry))
		var out, log strings.Builder
		require.Equal(t, cli.ExitOK, run(append([]string{"doctor", "--config", config}, flags...), nil, &out, &log), log.String())
		return out.String()
	}
	const browser, tab = `{"mint":"open_browser","release":"close_browser","argument":"browser_id"}`, `{"mint":"open_tab","release":"close_tab","argument":"tab_id"}`

	shown := doctor(`"handles": []`)
	require.Contains(t, shown, "\none: some of its tools look as if they open what others close. The lines below are not in use")
	require.Contains(t, shown, "\n"+browser+"\n    it lacks \"path\" or \"pattern\", which say where the result of open_browser has browser_id; its \"list\" may be list_browsers\n")
	require.Contains(t, shown, "\n"+tab+"\n")

	require.NotContains(t, doctor(`"deny": ["open_*"]`), "not in use", "nobody can call them")
	shown = doctor(`"handles": [{"mint": "open_browser", "path": "id", "release": "close_browser", "argument": "browser_id"}]`)
	require.NotContains(t, shown, browser)
	require.Contains(t, shown, "\n"+tab+"\n")
	require.NotContains(t, shown, "handles[0]")

	shown = doctor(`"handles": [{"mint": "open_browsers", "path": "id", "release": "close_browser", "list": "show", "listed": "(.)"},
		{"mint": "open_browser", "path": "browser_id", "release": "closeBrowser"}, {"mint": "open_tab", "path": "tab", "release": "close_tab"}]`)
	for _, want := range []string{
		`one: handles[0].mint: the server lists no tool "open_browsers": did you mean "open_browser"?`,
		`one: handles[0].list: the server lists no tool "show"` + "\n",
		`one: handles[1].release: the server lists no tool "closeBrowser": did you mean "close_browser"?`,
		`one: handles[0].argument: close_browser has no argument "id"` + "\n",
		`one: handles[2].argument: close_tab has no argument "tab"` + "\n",
	} {
		require.Contains(t, shown, want)
	}
	require.NotContains(t, shown, "not in use")

	var found struct {
		Servers []struct {
			ProposedHandles []handleguess.Guess `json:"proposedHandles"`
		} `json:"servers"`
	}
	require.NoError(t, json.Unmarshal([]byte(doctor(`"deny": ["open_browser"]`, "--json")), &found))
	require.Equal(t, []handleguess.Guess{{Mint: "open_tab", Release: "close_tab", Argument: "tab_id"}}, found.Servers[0].ProposedHandles)
}
