package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/toolset"
)

func TestClientHasTheEntryOfItsNameOrTheFirstPattern(t *testing.T) {
	file, err := parse(`{"mcpServers": {"files": {"command": "x", "readOnly": true}, "memory": {"command": "x"}}, "clients": {
		"cursor*": {"deny": ["${EMPTY:-drop}*"]},
		"*": {"readOnly": true},
		"cursor-cli": {},
		"@a/b": {"allow": ["files/read_*", "*/admin/drop", "list"], "deny": ["memory/list"]},
		"only": {"allow": ["files/*"]}
	}}`)
	require.NoError(t, err)
	require.Empty(t, file.Warnings)
	require.Equal(t, []toolset.Filter{{Name: "files", ReadOnly: true}, {Name: "memory"}}, file.Tools)
	for client, want := range map[string][]toolset.Filter{
		"cursor-vscode": {{Name: "files", Deny: []string{"drop*"}}, {Name: "memory", Deny: []string{"drop*"}}},
		"cursor-cli":    {{Name: "files"}, {Name: "memory"}},
		"claude/code":   {{Name: "files", ReadOnly: true}, {Name: "memory", ReadOnly: true}},
		"@a/b":          {{Name: "files", Allow: []string{"read_*", "admin/drop", "list"}}, {Name: "memory", Allow: []string{"admin/drop", "list"}, Deny: []string{"list"}}},
		"only":          {{Name: "files", Allow: []string{"*"}}, {Name: "memory", Deny: []string{"*"}}},
	} {
		for i, server := range []string{"files", "memory"} {
			require.Equal(t, want[i], file.Client(client).Filter(server), "%s %s", client, server)
		}
	}
	require.Equal(t, config.Client{}, (&config.File{Clients: file.Clients[:1]}).Client("claude-code"))
}

func TestErrorsOfClientsNameTheFieldAndItsLine(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                             "line 2: clients: is a list, want an object",
		`{"a": []}`:                      "line 2: clients.a: is a list, want an object",
		`{"a": null}`:                    "line 2: clients.a: is null, want an object",
		`{"a": {}, "a": {}}`:             "line 2: clients.a: is a duplicate",
		`{"[": {}}`:                      "line 2: clients.[: is neither the name of a client nor a pattern",
		`{"": {}}`:                       `line 2: clients."": is neither the name of a client nor a pattern`,
		`{"a": {"denny": []}}`:           `line 2: clients.a.denny: is not a field: did you mean "deny"?`,
		`{"a": {"scope": "x"}}`:          "line 2: clients.a.scope: is not a field; the fields are allow, deny, readOnly",
		`{"a": {"readOnly": 1}}`:         "line 2: clients.a.readOnly: is a number, want true or false",
		`{"a": {"deny": "x"}}`:           "line 2: clients.a.deny: is a string, want a list",
		`{"a": {"deny": ["x", 7]}}`:      "line 2: clients.a.deny[1]: is a number, want a string",
		`{"a": {"deny": ["${TOKEN}["]}}`: "line 2: clients.a.deny[0]: is not a valid pattern",
		`{"a": {"deny": [""]}}`:          "line 2: clients.a.deny[0]: has no name of a tool",
		`{"a": {"deny": ["/x"]}}`:        "line 2: clients.a.deny[0]: has no name of a tool, or none of a server before the slash",
		`{"a": {"deny": ["${scope}"]}}`:  "line 2: clients.a.deny[0]: cannot depend on the scope",
		`{"a": {"allow": []}}`:           "line 2: clients.a.allow: is empty: remove it to allow all tools",
	} {
		_, err := parse("{\"mcpServers\": {\"a\": {\"command\": \"x\"}},\n\"clients\": " + text + "}")
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "t0ken")
	}
	file, err := parse("{\"mcpServers\": {\"a\": {\"command\": \"x\"}, \"off\": {\"disabled\": true}},\n\"clients\": {\"c\": {\"deny\": [\"a/x\", \"off/x\", \"?/x\"]}}}")
	require.NoError(t, err)
	require.Equal(t, []config.Warning{{
		Field: "clients.c.deny[1]", Line: 2, Text: "is for no server that is enabled: write */off/x for a tool whose name has a slash",
	}}, file.Warnings)
}

// What comes before the first slash is always a server, so that no tool can have the name of another server's.
func TestPatternIsForTheServerBeforeItsSlash(t *testing.T) {
	for text, want := range map[string]string{ // the tools of the servers a and b, both of which have x, a/x and admin/x
		"x": "a/x b/x", "a/x": "a/x", "*/a/x": "a/a/x b/a/x", "b/a*": "b/a/x b/admin/x", "[bc]/x": "b/x", "admin/x": "", "a*": "a/a/x a/admin/x b/a/x b/admin/x",
	} {
		pattern, err := config.ParsePattern(text)
		require.NoError(t, err)
		var got []string
		for _, server := range []string{"a", "b"} {
			for _, tool := range []string{"x", "a/x", "admin/x"} {
				if (config.Client{Allow: []config.Pattern{pattern}}).Filter(server).Wants(tool, false) {
					got = append(got, server+"/"+tool)
				}
			}
		}
		require.ElementsMatch(t, strings.Fields(want), got, text)
	}
}
