package config_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/config"
)

// What stands after the = of a name may be a value that was put into the wrong place.
func TestNameOfAVariableIsShownUpToItsEqualsSign(t *testing.T) {
	for _, entry := range []string{`"KEY=secret": ""`, `"KEY=secret": 7`} {
		_, err := parse(`{"mcpServers": {"s": {"command": "x", "env": {` + entry + `}}}}`)
		require.ErrorContains(t, err, "env.KEY=…: ")
		require.NotContains(t, err.Error(), "secret")
	}
}

func TestInvalidNamesOfServersAreReplaced(t *testing.T) {
	file, err := parse(`{"mcpServers": {"My Server!": {"command": "x"}, "@scope/name": {"command": "x"}, "a-": {"command": "x"}, "é": {"disabled": true}}}`)
	require.NoError(t, err)
	var names []string
	for _, server := range file.Supervisor.Servers {
		names = append(names, server.Name)
	}
	require.Equal(t, []string{"scope-name", "My-Server", "a-"}, names)
	require.Equal(t, map[string]string{"My Server!": "My-Server", "@scope/name": "scope-name"}, file.Renamed)
	require.Len(t, file.Warnings, 2)
	require.Equal(t, config.Warning{Field: "mcpServers.My Server!", Line: 1, Text: `gets the name "My-Server": a name has only the letters A to Z, digits, dots, dashes and underscores`}, file.Warnings[1])

	for servers, want := range map[string]string{
		`"a b": {"command": "x"}, "a-b": {"command": "x"}`: `mcpServers.a-b: would get the name "a-b", which is the name of mcpServers.a b: rename one of them`,
		`"a b": {"command": "x"}, "a/b": {"command": "x"}`: `mcpServers.a/b: would get the name "a-b"`,
		`"": {"command": "x"}`:                             `mcpServers."": name: "" is not a name`,
		`"a\nb c": {"args": 7}`:                            `mcpServers."a\nb c".args: is a number`,
	} {
		_, err := parse(`{"mcpServers": {` + servers + `}}`)
		require.ErrorContains(t, err, want)
	}
	file, err = parse(`{"mcpServers": {"高德地图 MCP": {"command": "x"}, "百度地图 MCP": {"command": "x"}, "é": {"command": "x"}, "Café": {"command": "x"}, "文件": {"command": "x"}, "🚀": {"command": "x"}}}`)
	require.NoError(t, err)
	names = nil
	for _, server := range file.Supervisor.Servers {
		names = append(names, server.Name)
	}
	require.Equal(t, []string{"Caf", "server-4a99557e", "server-39932f24", "MCP-46bb98ea", "MCP-79b61fae", "server-ebbc0b28"}, names, "each has the same name in all files")
	require.Len(t, file.Warnings, 6)
	_, err = parse(`{"mcpServers": {"` + strings.Repeat("a", 129) + `": {"command": "x"}}}`)
	require.ErrorContains(t, err, "is not a name")
}

func TestTransportsHaveTheNamesOfEachClient(t *testing.T) {
	for entry, want := range map[string]string{
		`"type": "http", "url": "http://x"`: "http", `"type": "streamable-http", "url": "http://x"`: "http", `"type": "streamableHttp", "url": "http://x"`: "http",
		`"type": "Streamable_HTTP", "url": "http://x"`: "http", `"transport": "sse", "serverUrl": "http://x"`: "sse", `"transportType": "sse", "url": "http://x"`: "sse",
		`"type": "remote", "url": "http://x"`: "", `"httpUrl": "http://x"`: "http", `"httpUrl": "http://x", "url": "http://x", "type": "sse"`: "sse",
		`"type": "stdio", "command": "x"`: "", `"type": "local", "command": ["x"]`: "", `"type": "http", "transport": "streamable-http", "url": "http://x"`: "http",
	} {
		file, err := parse(`{"mcpServers": {"a": {` + entry + `}}}`)
		require.NoError(t, err, entry)
		require.Equal(t, want, file.Supervisor.Servers[0].Transport, entry)
	}
	for entry, want := range map[string]string{
		`"type": "ws", "url": "ws://x"`:                         `a.type: "ws" is not supported: use stdio, http or sse`,
		`"transport": "websocket", "url": "ws://x"`:             `a.transport: "websocket" is not supported`,
		`"type": "http", "transport": "sse", "url": "http://x"`: `a.transport: is "sse", but type is "http"`,
		`"url": "http://x", "serverUrl": "http://y"`:            "a.serverUrl: is a different URL for the same server",

		`"type": "stdio"`:                       `a.command: is empty, but type is "stdio"`,
		`"type": "sse"`:                         `a.url: is empty, but type is "sse"`,
		`"source": "extension", "settings": {}`: `a.source: is "extension", which only Zed can start`,

		`"command": "x", "env": {"A": "b"}, "environment": {}`:     "a.environment: conflicts with env",
		`"command": {"path": "x", "env": {"A": "b"}}, "env": {}`:   "a.command.env: conflicts with env of the server",
		`"command": {"path": "x", "args": ["b"]}, "args": ["c"]`:   "a.command.args: conflicts with args of the server",
		`"command": {"path": "x", "deny": ["y"]}`:                  `a.command.deny: is not a field: did you mean "deny"?`,
		`"transport": {"type": "http", "url": "http://x"}`:         "a.transport: is an object, want a string",
		`"command": "x", "args": ["-p", 3000], "env": {"A": null}`: "a.args[1]: is a number, want a string",
	} {
		_, err := parse(`{"mcpServers": {"a": {` + entry + `}}}`)
		require.ErrorContains(t, err, want, entry)
	}
}
