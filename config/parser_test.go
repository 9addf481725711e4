package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/toolset"
)

// environment has the environment variables of the tests.
func environment(name string) (string, bool) {
	value, ok := map[string]string{"TOKEN": "t0ken ${HOME}", "EMPTY": "", "scope": "of the environment"}[name]
	return value, ok
}

// parse parses a configuration, with the environment of the tests.
func parse(text string) (*config.File, error) {
	return config.Loader{LookupEnv: environment}.Parse([]byte(text))
}

func TestServersSettingsAndFiltersAreRead(t *testing.T) {
	file, err := parse("\ufeff" + `{
		"mcpServers": {
			"files": {"command": "${CMD:-npx}", "args": ["-y", "${EMPTY:-x}${TOKEN}"], "env": {"A": "${EMPTY}"}, "cwd": "/", "autoApprove": ["x"]},
			"web": {"type": "streamable-http", "url": "http://localhost/${PATH2:-mcp}", "headers": {"Authorization": "Bearer ${TOKEN}"}, "keepAlive": "10s", "maxResult": 5, "noStream": true,
				"setup": [{"tool": "login", "arguments": {"token": "${TOKEN}", "tries": 2, "in": [{"a": "${EMPTY:-y}"}], "id": 9007199254740993}}, {"tool": "start"}],
				"allow": ["read_*", "${EMPTY:-list}"], "deny": ["read_secret"], "displayName": "${NAME:-Web}", "slug": "w", "scope": "shared", "metadata": {"team": "${TEAM:-core}", "tier": 2, "more": {"a": "${B:-$5 ($US)}"}}},
			"old": {"type": "sse", "url": "http://localhost/sse"},
			"off": {"disabled": true, "url": "${NOT_SET}", "allow": ["["]}
		},
		"supervisor": {"maxSessions": 3, "idleTimeout": "-1ns", "callTimeout": "1m30s", "handlerTimeout": "2m", "roots": true, "store": "${DIR:-/tmp}/s.db", "leaveOpen": true},
		"theme": "dark"
	}`)
	require.NoError(t, err)
	cfg := file.Supervisor
	require.Equal(t, []mcpbridge.Server{
		{Name: "files", Command: "npx", Args: []string{"-y", "xt0ken ${HOME}"}, Env: map[string]string{"A": ""}, Dir: "/"},
		{Name: "old", URL: "http://localhost/sse", Transport: "sse"},
		{Name: "web", URL: "http://localhost/mcp", Transport: "http", Headers: map[string]string{"Authorization": "Bearer t0ken ${HOME}"}, KeepAlive: 10 * time.Second, MaxResult: 5, NoStream: true, Setup: []*mcp.CallToolParams{
			{Name: "login", Arguments: map[string]any{"token": "t0ken ${HOME}", "tries": 2.0, "in": []any{map[string]any{"a": "y"}}, "id": int64(9007199254740993)}},
			{Name: "start", Arguments: map[string]any{}},
		}},
	}, cfg.Servers)
	require.Equal(t, []toolset.Filter{
		{Name: "files"},
		{Name: "old"},
		{
			Name: "web", Scope: "shared", Allow: []string{"read_*", "list"}, Deny: []string{"read_secret"}, DisplayName: "Web", Slug: "w",
			Metadata: map[string]any{"team": "core", "tier": 2.0, "more": map[string]any{"a": "$5 ($US)"}},
		},
	}, file.Tools)
	require.Equal(t, 2*time.Minute, cfg.HandlerTimeout)
	require.Equal(t, &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{ListChanged: true}}, cfg.Capabilities)
	require.Equal(t, "/tmp/s.db", file.Store)
	require.True(t, cfg.LeaveOpen)
	require.Equal(t, 3, cfg.MaxSessions)
	require.EqualValues(t, -1, cfg.IdleTimeout)
	require.Equal(t, 90*time.Second, cfg.CallTimeout)
	require.Equal(t, []config.Warning{
		{Field: "mcpServers.files.autoApprove", Line: 3, Text: "has no effect"},
		{Field: "theme", Line: 11, Text: "has no effect"},
	}, file.Warnings)
	require.Equal(t, "line 11: theme: has no effect", file.Warnings[1].String())
}

func TestErrorsOfConfigurationsNameTheField(t *testing.T) {
	for text, want := range map[string]string{
		``:                "is empty",
		"# y":             "is empty",
		`{`:               "is not valid JSON: line 1, column 2",
		"{\n \"a\": 1,\n": "is not valid JSON: line 3, column 1",
		`{"a": ` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + "}": "line 1: is nested too deeply",
		"a: " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000):          "line 1: is nested too deeply",
		"a: [":                                  "is neither JSON nor YAML: line 1",
		"a: 1\n---\nb: 2":                       "line 2: has a second document",
		"a: &x {}\nmcpServers: *x":              "line 2: mcpServers: is a YAML alias",
		"a: {<<: {}}":                           "line 1: a: has a key that is not a plain string",
		"a: !b c":                               `line 1: a: has the YAML tag "!b"`,
		"a: \"\xff\"":                           "line 1: is not valid UTF-8",
		"{\n\"mcpServers\": {\"\xff\": {}}}":    "line 2: is not valid UTF-8",
		"{\n\"mcpServers\": {\"\\ud800\": {}}}": `line 2: mcpServers.""`,
		`{"mcpServers": {"a": {"command": "\udc00"}}}`: "mcpServers.a.command: has an escape",
		"{\"a\": \"" + strings.Repeat("[", 200_000):    "is too large",
		`[]`:                        "is a list, want an object",
		`null`:                      "is null, want an object",
		`{}`:                        "mcpServers: is missing",
		`{"mcpServers": {}}`:        "mcpServers: has no enabled server",
		`{"mcpServers": []}`:        "mcpServers: is a list, want an object",
		`{"mcpServers": {"a": 7}}`:  "mcpServers.a: is a number, want an object",
		`{"mcpServers": {"a": {}}}`: "mcpServers.a.command: is empty, and so is url: set one",
		`{"mcpServers": {"a": {"command": "x", "url": "http://x"}}}`:                                          "mcpServers.a.command: conflicts with url: give one of them",
		`{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}`:                                      "mcpServers.a: is a duplicate",
		`{"mcpServers": {"a": {"command": 7}}}`:                                                               "mcpServers.a.command: is a number, want a string",
		`{"mcpServers": {"a": {"command": "x", "args": "y"}}}`:                                                "mcpServers.a.args: is a string, want a list",
		`{"mcpServers": {"a": {"command": "x", "env": {"B": 7}}}}`:                                            "mcpServers.a.env.B: is a number, want a string",
		`{"mcpServers": {"a": {"command": "x", "env": {"B": "${NOT_SET}"}}}}`:                                 "mcpServers.a.env.B: the environment variable NOT_SET is not set",
		`{"mcpServers": {"a": {"command": "x", "args": ["", "${NOT_SET}"]}}}`:                                 "mcpServers.a.args[1]: the environment variable NOT_SET is not set",
		`{"mcpServers": {"a": {"type": "pigeon", "url": "http://x"}}}`:                                        `mcpServers.a.type: "pigeon" is not supported`,
		`{"mcpServers": {"a": {"type": "sse", "command": "x"}}}`:                                              "mcpServers.a.url: is empty",
		`{"mcpServers": {"a": {"type": "stdio", "url": "http://x"}}}`:                                         "mcpServers.a.command: is empty",
		`{"mcpServers": {"a": {"url": "ftp://x"}}}`:                                                           "mcpServers.a: url: scheme",
		`{"mcpServers": {"a": {"url": "http://x", "keepAlive": 5}}}`:                                          `mcpServers.a.keepAlive: want a duration such as "30s"`,
		`{"mcpServers": {"a": {"command": "x", "setup": [{"name": "t"}]}}}`:                                   "mcpServers.a.setup[0].name: is not a field; the fields are arguments, tool",
		`{"mcpServers": {"a": {"command": "x", "setup": [{"arguments": {}}]}}}`:                               "mcpServers.a.setup[0].tool: is missing",
		`{"mcpServers": {"a": {"command": "x", "setup": [{"tool": "t", "arguments": {"k": "${NOT_SET}"}}]}}}`: "mcpServers.a.setup[0].arguments.k: the environment variable",
		`{"mcpServers": {"a": {"command": "x", "allow": "y"}}}`:                                               "mcpServers.a.allow: is a string, want a list",
		`{"mcpServers": {"a": {"command": "x", "allow": ["y", "["]}}}`:                                        `mcpServers.a.allow[1]: "[" is not a valid pattern`,
		`{"mcpServers": {"a": {"command": "x", "deny": [""]}}}`:                                               "mcpServers.a.deny[0]: is empty",
		`{"mcpServers": {"a": {"command": "x", "deny": ["${NOT_SET}"]}}}`:                                     "mcpServers.a.deny[0]: the environment variable",
		`{"mcpServers": {"a": {"command": "x", "displayName": 7}}}`:                                           "mcpServers.a.displayName: is a number, want a string",
		`{"mcpServers": {"a": {"command": "x", "scope": "a\u0001"}}}`:                                         "mcpServers.a: scope: has a control character",
		`{"mcpServers": {"a": {"command": "x", "slug": []}}}`:                                                 "mcpServers.a.slug: is a list, want a string",
		`{"mcpServers": {"a": {"command": "x", "metadata": "y"}}}`:                                            "mcpServers.a.metadata: is a string, want an object",
		`{"mcpServers": {"a": {"command": "x", "metadata": {"k": "${NOT_SET}"}}}}`:                            "mcpServers.a.metadata.k: the environment variable",
		`{"mcpServers": {"a": {"command": "x"}}, "supervisor": {"store": 7}}`:                                 "supervisor.store: is a number, want a string",
		`{"mcpServers": {"a": {"command": "x"}}, "supervisor": {"store": "${NOT_SET}"}}`:                      "supervisor.store: the environment variable",
		`{"mcpServers": {"a": {"command": "x"}}, "supervisor": {"leaveOpen": "yes"}}`:                         "supervisor.leaveOpen: is a string, want true or false",
		`{"mcpServers": {"a": {"command": "x"}}, "supervisor": {"roots": []}}`:                                "supervisor.roots: is a list, want true or false",
		`{"mcpServers": {"a": {"command": "x"}}, "supervisor": {"handlerTimeout": 5}}`:                        "supervisor.handlerTimeout: want a duration",
		`{"mcpServers": {"a": {"command": "x"}}, "supervisor": {"capabilities": {}}}`:                         "supervisor.capabilities: is not a field",
		`{"mcpServers": {"a": {"command": "x"}}, "supervisor": {"maxSession": 1}}`:                            `supervisor.maxSession: is not a field: did you mean "maxSessions"?`,
		`{"mcpServers": {"a": {"command": "x"}}, "supervisor": {"idleTimeout": "x"}}`:                         `supervisor.idleTimeout: want a duration`,
		`{"mcpServers": {"a": {"command": "x"}}, "supervisor": {"maxSessions": 1.5}}`:                         "supervisor.maxSessions: is a number, want a whole number",
	} {
		_, err := parse(text)
		require.ErrorContains(t, err, want, text)
		require.NotContains(t, err.Error(), "t0ken")
	}
}
