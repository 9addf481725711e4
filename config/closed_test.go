package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/config"
)

// Finding H: what restricts is honoured, or it is an error, wherever it stands and however
// it is spelt.
func TestFieldsThatRestrictAreNeverDropped(t *testing.T) {
	for field, want := range map[string]string{
		`"Deny": ["x"]`:                              `is not a field: did you mean "deny"?`,
		`"deny ": []`:                                `did you mean "deny"?`,
		`"DISABLED": true`:                           `did you mean "disabled"?`,
		`"disable": true`:                            `did you mean "disabled"?`,
		`"enable": false`:                            `did you mean "enabled"?`,
		`"enabled_tools": ["x"]`:                     `did you mean "enabledTools"?`,
		`"disabled-tools": ["x"]`:                    `did you mean "disabledTools"?`,
		`"excludedTools": ["x"]`:                     `did you mean "excludeTools"?`,
		`"exludeTools": ["x"]`:                       `did you mean "excludeTools"?`,
		`"tool": ["x"]`:                              `did you mean "tools"?`,
		`"isActive": false`:                          "may restrict the server",
		`"toolFilter": {"mode": "x"}`:                "may restrict the server",
		`"blockedTools": ["x"]`:                      "may restrict the server",
		`"exclude": "x"`:                             "may restrict the server",
		`"tool_allowlist": ["x"]`:                    "may restrict the server",
		`"readOnly": true`:                           "may restrict the server",
		`"sandboxEnabled": true`:                     "may restrict the server",
		`"sandbox": {"network": {"domains": ["x"]}}`: "may restrict the server",
		`"settings": {"x": {"deny": ["y"]}}`:         "settings.x.deny: may restrict tools",
		`"policy": {"x": "deny"}`:                    "policy.x: may restrict tools",
		`"tools": {"x": false}`:                      "tools: is an object, which may restrict",
		`"tools": "x"`:                               "tools: is a string, which may restrict",
		`"tools": []`:                                "tools: is empty: leave it out",
		`"allow": []`:                                "allow: is empty: leave it out",
		`"includeTools": []`:                         "includeTools: is empty: leave it out",
		`"allow": ["x"], "includeTools": ["x"]`:      "includeTools: is given, and so is allow",
		`"deny": "x"`:                                "deny: is a string, want a list",
		`"disabledTools": {"x": true}`:               "disabledTools: is an object, want a list",
		`"disabled": "true"`:                         "disabled: is a string, want true or false",
		`"enabled": 0`:                               "enabled: is a number, want true or false",
		`"disabled": false, "disabled": true`:        "disabled: is there twice",
		`"deny": ["x"], "deny": []`:                  "deny: is there twice",
		`"headres": {"Authorization": "x"}`:          `did you mean "headers"?`,
		`"HTTPURL": "http://x"`:                      `did you mean "httpUrl"?`,
		`"max_result": 5`:                            `did you mean "maxResult"?`,
	} {
		_, err := parse(`{"mcpServers": {"a": {"command": "x", ` + field + `}}}`)
		require.ErrorContains(t, err, want, field)
		require.ErrorContains(t, err, "line 1: mcpServers.a.", field)
	}
	for field, want := range map[string]string{
		`"supervisr": {"maxSessions": 1}`:        `supervisr: is not a field: did you mean "supervisor"?`,
		`"Supervisor": {}`:                       `Supervisor: is not a field: did you mean "supervisor"?`,
		`"mcp_servers": {}`:                      `did you mean "mcpServers"?`,
		`"servers": {}`:                          "servers: is given, and so is mcpServers",
		`"disabled": true`:                       "disabled: may restrict the servers",
		`"Deny": ["x"]`:                          "Deny: may restrict the servers",
		`"excludeMCPServers": ["a"]`:             "excludeMCPServers: may restrict",
		`"permissions": {"deny": ["mcp__a__x"]}`: "permissions.deny: may restrict tools or servers, and has no effect here: put the servers into a file of their own",

		`"projects": {"/p": {"disabledMcpjsonServers": ["a"]}}`:      "projects./p.disabledMcpjsonServers: may restrict",
		`"tools": {"exclude": ["x"]}`:                                "tools.exclude: may restrict",
		`"tools": {"core": ["x"]}`:                                   "tools.core: may restrict",
		`"agent": {"profiles": {"p": {"context_servers": {"a":1}}}}`: "agent.profiles.p.context_servers: may restrict",
		`"mcp": {"excluded": "a"}`:                                   "mcp.excluded: is a string, want a list",
		`"mcp": {"allowed": []}`:                                     "mcp.allowed: is empty",
		`"mcp": {"exclude": ["a"]}`:                                  `mcp.exclude: is not a field: did you mean "excluded"?`,
		`"mcp": {"enabled": false}`:                                  "mcp.enabled: may restrict",
		`"supervisor": {"deny": ["x"]}`:                              "supervisor.deny: is not a field; there are",
	} {
		_, err := parse(`{"mcpServers": {"a": {"command": "x"}}, ` + field + `}`)
		require.ErrorContains(t, err, want, field)
	}
	for field, want := range map[string]string{
		`"tools": {"*_delete": false}`:                     "tools.*_delete: refuses tools of mcp.a in a way that is not understood",
		`"tools": {"a_[x]": false}`:                        "tools.a_[x]: refuses tools of mcp.a in a way",
		`"permission": {"a_x": {"y": "deny"}}`:             "permission.a_x: refuses tools of mcp.a in a way",
		`"permission": "deny"`:                             "permission: may restrict",
		`"permissions": [{"tool": "x", "action": "deny"}]`: "permissions: may restrict",
		`"agent": {"p": {"tools": {"a_*": false}}}`:        "agent.p.tools: may restrict",
		`"agent": {"p": {"disallowedTools": ["x"]}}`:       "agent.p.disallowedTools: may restrict",
	} {
		_, err := parse(`{"mcp": {"a": {"type": "local", "command": ["x"]}}, ` + field + `}`)
		require.ErrorContains(t, err, want, field)
	}
}

// What restricts nothing is not an error: the real files of clients have it.
func TestFieldsThatRestrictNothingAreWarnings(t *testing.T) {
	for _, field := range []string{
		`"trust": true`, `"timeout": 5`, `"alwaysAllow": ["x"]`, `"autoApprove": []`, `"excludedX": []`, `"isActive": true`, `"sandboxEnabled": false`,
		`"blocked": {"a": [], "b": null}`, `"dev": {"watch": "x"}`, `"name": "x"`, `"version": "1"`, `"gallery": true`, `"startup": false`,
	} {
		file, err := parse(`{"mcpServers": {"a": {"command": "x", ` + field + `}}}`)
		require.NoError(t, err, field)
		require.Len(t, file.Warnings, 1, field)
	}
	file, err := parse(`{"mcpServers": {
		"a": {"command": "x", "enabled": true, "disabled": false, "deny": [], "disabledTools": null, "tools": {}, "args": null, "type": null},
		"b": {"enabled": false, "deny": "x"}, "c": {"disabled": true, "enabled": true},
		"d": {"command": "x", "tools": ["*"], "deny": ["y"], "excludeTools": ["z"]}
	}, "projects": {"/p": {"allowedTools": [], "tools": {}, "disabledMcpServers": null}}, "$schema": "x", "mcp": null}`)
	require.NoError(t, err)
	require.Equal(t, []config.Warning{{Field: "projects", Line: 5, Text: "is not used here"}}, file.Warnings)
	require.Len(t, file.Tools, 2, "those that are disabled are not there")
	require.Empty(t, file.Tools[0].Deny)
	require.Equal(t, []string{"*"}, file.Tools[1].Allow)
	require.Equal(t, []string{"y", "z"}, file.Tools[1].Deny)
}

// Finding H: a variable is replaced, or it is an error: it is never sent as it stands.
func TestVariablesThatCannotBeReplacedAreErrors(t *testing.T) {
	for value, want := range map[string]string{
		"${env:NOT_SET}":          "the environment variable NOT_SET is not set",
		"${NOT_SET}":              "the environment variable NOT_SET is not set: set it, or write ${NOT_SET:-default}",
		"${input:key}":            `needs the input "key"`,
		"${command:x.y}":          "has a ${…} that is not known",
		"${config:x}":             "has a ${…} that is not known",
		"${{ secrets.X }}":        "has a ${…} that is not known",
		"${}":                     "has a ${…} that is not known",
		"${A-b}":                  "has a ${…} that is not known",
		"${TOKEN:?}":              "has a ${…} that is not known",
		"${NOT_SET:-${TOKEN}}":    "has a ${…} that is not known",
		"${workspaceFolder}":      "the workspace folder is not known",
		"${workspaceFolder:a}/b":  "the workspace folder is not known",
		"${file:no/such}":         "no such file",
		"Bearer ${TOKEN":          "has a ${ without a }",
		"{env:TOKEN}":             "{env:…} is replaced in files of opencode only",
		"{file:/etc/hostname}":    "{file:…} is replaced in files of opencode only",
		"$TOKEN":                  "$TOKEN is not replaced: write ${TOKEN}",
		"Bearer $TOKEN":           "$TOKEN is not replaced",
		"pa$word":                 "$word is not replaced",
		"{{TOKEN}}":               "{{TOKEN}} is replaced for each user",
		"Bearer {{ MY_API_KEY }}": "{{MY_API_KEY}} is replaced for each user",
	} {
		for field, entry := range map[string]string{
			"headers.Authorization":     `{"url": "http://x", "headers": {"Authorization": %q}}`,
			"url":                       `{"url": %q}`,
			"env.KEY":                   `{"command": "x", "env": {"KEY": %q}}`,
			"args[1]":                   `{"command": "x", "args": ["--key", %q]}`,
			"command":                   `{"command": %q}`,
			"command[1]":                `{"command": ["x", %q]}`,
			"cwd":                       `{"command": "x", "cwd": %q}`,
			"setup[0].arguments.a[0].b": `{"command": "x", "setup": [{"tool": "t", "arguments": {"a": [{"b": %q}]}}]}`,
			"deny[0]":                   `{"command": "x", "deny": [%q]}`,
			"includeTools[0]":           `{"command": "x", "includeTools": [%q]}`,
		} {
			if field == "includeTools[0]" && strings.Contains(value, "$") { // Gemini CLI replaces $VAR
				continue
			}
			_, err := parse("{\"mcpServers\": {\n\"a\": " + fmt.Sprintf(entry, value) + "}}")
			require.ErrorContains(t, err, "line 2: mcpServers.a."+field+": ", value)
			if field != "includeTools[0]" {
				require.ErrorContains(t, err, want, field)
			}
			require.NotContains(t, err.Error(), "t0ken")
		}
	}
	_, err := parse(`{"mcp": {"a": {"type": "remote", "url": "http://x/{env:NOT_SET}"}}}`)
	require.ErrorContains(t, err, "mcp.a.url: the environment variable NOT_SET is not set")
	_, err = parse(`{"mcpServers": {"a": {"httpUrl": "http://x/$NOT_SET"}}}`)
	require.ErrorContains(t, err, "mcpServers.a.httpUrl: the environment variable NOT_SET is not set")
	file, err := parse(`{"mcpServers": {"a": {"command": "docker", "args": ["--format", "{{.Names}} {x} $5 $", "-c", "echo $HOME {env}"]}}}`)
	require.NoError(t, err)
	require.Equal(t, []string{"--format", "{{.Names}} {x} $5 $", "-c", "echo $HOME {env}"}, file.Supervisor.Servers[0].Args)
}

func TestServersAreNamedAsWeAllow(t *testing.T) {
	file, err := parse(`{"mcpServers": {"My Server!": {"command": "x"}, "@scope/name": {"command": "x"}, "a-": {"command": "x"}, "é": {"disabled": true}}}`)
	require.NoError(t, err)
	var names []string
	for _, server := range file.Supervisor.Servers {
		names = append(names, server.Name)
	}
	require.Equal(t, []string{"scope-name", "My-Server", "a-"}, names)
	require.Len(t, file.Warnings, 2)
	require.Equal(t, config.Warning{Field: "mcpServers.My Server!", Line: 1, Text: `has the name "My-Server" here: other characters than letters, digits, dots, dashes and underscores are replaced`}, file.Warnings[1])

	for servers, want := range map[string]string{
		`"a b": {"command": "x"}, "a-b": {"command": "x"}`: `mcpServers.a-b: would have the name "a-b", as mcpServers.a b has: rename one of them`,
		`"a b": {"command": "x"}, "a/b": {"command": "x"}`: `mcpServers.a/b: would have the name "a-b"`,
		`"é": {"command": "x"}`:                            `mcpServers.é: name: "" is not a name`,
		`"": {"command": "x"}`:                             `mcpServers."": name: "" is not a name`,
		`"a\nb c": {"args": 7}`:                            `mcpServers."a\nb c".args: is a number`,
	} {
		_, err := parse(`{"mcpServers": {` + servers + `}}`)
		require.ErrorContains(t, err, want)
	}
	_, err = parse(`{"mcpServers": {"` + strings.Repeat("a", 129) + `": {"command": "x"}}}`)
	require.ErrorContains(t, err, "is not a name")
}

func TestTransportsAreSpeltAsEachClientDoes(t *testing.T) {
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
		`"type": "ws", "url": "ws://x"`:                         `a.type: "ws" is none of stdio, http and sse`,
		`"transport": "websocket", "url": "ws://x"`:             `a.transport: "websocket" is none of`,
		`"type": "http", "transport": "sse", "url": "http://x"`: `a.transport: is "sse", but type is "http"`,
		`"url": "http://x", "serverUrl": "http://y"`:            "a.serverUrl: is another URL of the same server",

		`"type": "stdio"`:                       `a.command: is empty, but type is "stdio"`,
		`"type": "sse"`:                         `a.url: is empty, but type is "sse"`,
		`"source": "extension", "settings": {}`: "a.source: is an extension, which only Zed starts",

		`"command": "x", "env": {"A": "b"}, "environment": {}`:     "a.environment: is given, and so is env",
		`"command": {"path": "x", "deny": ["y"]}`:                  `a.command.deny: is not a field: did you mean "deny"?`,
		`"transport": {"type": "http", "url": "http://x"}`:         "a.transport: is an object, want a string",
		`"command": "x", "args": ["-p", 3000], "env": {"A": null}`: "a.args[1]: is a number, want a string",
	} {
		_, err := parse(`{"mcpServers": {"a": {` + entry + `}}}`)
		require.ErrorContains(t, err, want, entry)
	}
}

func TestAllThatIsWrongIsToldAtOnceWithItsPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "servers.json")
	require.NoError(t, os.WriteFile(path, []byte(`{
	// comment
	"mcpServers": {
		"a": {
			"command": "x",
			"Deny": ["y"],
			"env": {"TOKEN": "${NOT_SET}"},
		},
	},
	"supervisr": {},
}`), 0o600))
	_, err := config.Loader{LookupEnv: environment}.Load(path)
	require.EqualError(t, err, strings.ReplaceAll(`FILE:6: mcpServers.a.Deny: is not a field: did you mean "deny"?
FILE:7: mcpServers.a.env.TOKEN: the environment variable NOT_SET is not set: set it, or write ${NOT_SET:-default}
FILE:10: supervisr: is not a field: did you mean "supervisor"?`, "FILE", path))
	var first *config.Error
	require.ErrorAs(t, err, &first)
	require.Equal(t, []any{path, "mcpServers.a.Deny", 6}, []any{first.File, first.Field, first.Line})

	require.NoError(t, os.WriteFile(path, []byte("mcpServers:\n  a:\n    command: x\n    args: [1]\n"), 0o600))
	_, err = config.Load(path)
	require.EqualError(t, err, path+":4: mcpServers.a.args[0]: is a number, want a string")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err = config.Load(path)
	require.ErrorContains(t, err, path+": is no JSON: line 1")
	_, err = config.Load(path + ".not")
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestEnvironmentFilesAreReadOrRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "servers.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"servers": {"a": {"command": "x", "envFile": "its.env"}}}`), 0o600))
	_, err := config.Load(path)
	require.ErrorContains(t, err, "servers.a.envFile: open "+dir)
	for _, text := range []string{"A", "A b", "1=2", "A='x", `A="x`, `A="\t"`, "A=b'c", "A=x\nB =\"y\" z"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, "its.env"), []byte(text), 0o600))
		_, err := config.Load(path)
		if text == "A=b'c" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, "of the file is not understood", text)
	}
}
