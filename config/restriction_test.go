package config_test

import (
	"path"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/config"
)

// H-H: a field that restricts takes effect or is an error, anywhere in a file and in any
// spelling.
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
		`"readonly": true`:                           `did you mean "readOnly"?`,
		`"readOnly": "true"`:                         "readOnly: is a string, want true or false",
		`"sandboxEnabled": true`:                     "may restrict the server",
		`"sandbox": {"network": {"domains": ["x"]}}`: "may restrict the server",
		`"settings": {"x": {"deny": ["y"]}}`:         "settings.x.deny: may restrict tools",
		`"policy": {"x": "deny"}`:                    "policy.x: may restrict tools",
		`"tools": {"x": false}`:                      "tools: is an object, which may restrict",
		`"tools": "x"`:                               "tools: is a string, which may restrict",
		`"tools": []`:                                "tools: is empty: remove it",
		`"allow": []`:                                "allow: is empty: remove it",
		`"includeTools": []`:                         "includeTools: is empty: remove it",
		`"allow": ["x"], "includeTools": ["x"]`:      "includeTools: conflicts with allow",
		`"deny": "x"`:                                "deny: is a string, want a list",
		`"disabledTools": {"x": true}`:               "disabledTools: is an object, want a list",
		`"disabled": "true"`:                         "disabled: is a string, want true or false",
		`"enabled": 0`:                               "enabled: is a number, want true or false",
		`"disabled": false, "disabled": true`:        "disabled: is a duplicate",
		`"deny": ["x"], "deny": []`:                  "deny: is a duplicate",
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
		`"servers": {}`:                          "servers: conflicts with mcpServers",
		`"disabled": true`:                       "disabled: may restrict the servers",
		`"Deny": ["x"]`:                          "Deny: may restrict the servers",
		`"excludeMCPServers": ["a"]`:             "excludeMCPServers: may restrict",
		`"permissions": {"deny": ["mcp__a__x"]}`: "permissions.deny: may restrict tools or servers, but is not supported: put the servers into a file of their own",

		`"projects": ["deny", {"x": {"deny": ["y"]}}]`:               "projects[0]: may restrict",
		`"tools": {"exclude": ["x"]}`:                                "tools.exclude: may restrict",
		`"tools": {"core": ["x"]}`:                                   "tools.core: may restrict",
		`"agent": {"profiles": {"p": {"context_servers": {"a":1}}}}`: "agent.profiles.p.context_servers: may restrict",
		`"mcp": {"excluded": "a"}`:                                   "mcp.excluded: is a string, want a list",
		`"mcp": {"allowed": []}`:                                     "mcp.allowed: is empty",
		`"mcp": {"exclude": ["a"]}`:                                  `mcp.exclude: is not a field: did you mean "excluded"?`,
		`"mcp": {"enabled": false}`:                                  "mcp.enabled: may restrict",
		`"supervisor": {"deny": ["x"]}`:                              "supervisor.deny: is not a field; the fields are",
		`"chat.mcp.access": "none"`:                                  "chat.mcp.access: may restrict",
		`"chat.mcp.enabled": false`:                                  "chat.mcp.enabled: may restrict",
		`"mcpSettings": {"allowedDomains": ["x"]}`:                   "mcpSettings.allowedDomains: may restrict",
	} {
		_, err := parse(`{"mcpServers": {"a": {"command": "x"}}, ` + field + `}`)
		require.ErrorContains(t, err, want, field)
	}
	for field, want := range map[string]string{
		`"tools": {"*_delete": false}`:                     "tools.*_delete: denies tools of mcp.a by a pattern that cannot be converted",
		`"tools": {"a_[x]": false}`:                        "tools.a_[x]: denies tools of mcp.a by a pattern",
		`"permission": {"a_x": {"y": "deny"}}`:             "permission.a_x: denies tools of mcp.a by a pattern",
		`"permission": "deny"`:                             "permission: may restrict",
		`"permissions": [{"tool": "x", "action": "deny"}]`: "permissions: may restrict",
		`"agent": {"p": {"tools": {"a_*": false}}}`:        "agent.p.tools: may restrict",
		`"agent": {"p": {"disallowedTools": ["x"]}}`:       "agent.p.disallowedTools: may restrict",
	} {
		_, err := parse(`{"mcp": {"a": {"type": "local", "command": ["x"]}}, ` + field + `}`)
		require.ErrorContains(t, err, want, field)
	}
}

// The lists of Gemini CLI name servers by variables too, and in any case.
func TestExcludedServersAreFoundAsGeminiCLIFindsThem(t *testing.T) {
	loader := config.Loader{LookupEnv: func(name string) (string, bool) { return "one", name == "NAME" }}
	for lists, want := range map[string][]string{
		`"excluded": ["$NAME"]`:              {"Two"},
		`"excluded": ["${NAME}"]`:            {"Two"},
		`"excluded": ["ONE", " two "]`:       {"three"},
		`"allowed": ["${NAME:-x}", "three"]`: {"one", "three"},
		`"allowed": ["TWO"]`:                 {"Two"},
	} {
		three := `, "three": {"command": "x"}`
		if len(want) == 1 && want[0] == "Two" {
			three = ""
		}
		file, err := loader.Parse([]byte(`{"mcpServers": {"one": {"command": "x"}, "Two": {"command": "x"}` + three + `}, "mcp": {` + lists + `}}`))
		require.NoError(t, err, lists)
		require.Empty(t, file.Warnings, lists)
		var names []string
		for _, server := range file.Supervisor.Servers {
			names = append(names, server.Name)
		}
		require.Equal(t, want, names, lists)
	}
}

// Other clients deny the tool of exactly the name in the list, and opencode a tool whose name
// differs in the characters that it replaces.
func TestDeniedNameWithSpecialCharactersIsDenied(t *testing.T) {
	for text, name := range map[string]string{
		`{"mcpServers": {"a": {"command": "x", "excludeTools": ["read[1]"]}}}`:     "read[1]",
		`{"mcpServers": {"a": {"command": "x", "disabledTools": ["read\\file"]}}}`: `read\file`,
		`{"mcp": {"a": {"command": ["x"]}}, "tools": {"a_read_file": false}}`:      "read.file",
		`{"mcp": {"a": {"command": ["x"]}}, "permission": {"a_read_*": "deny"}}`:   "read/file",
	} {
		file, err := parse(text)
		require.NoError(t, err, text)
		require.True(t, slices.ContainsFunc(file.Tools[0].Deny, func(pattern string) bool {
			denied, err := path.Match(pattern, name)
			require.NoError(t, err)
			return denied
		}), text)
	}
}

// The files of clients have unsupported fields that restrict nothing.
func TestFieldsThatRestrictNothingAreWarnings(t *testing.T) {
	for _, field := range []string{
		`"trust": true`, `"timeout": 5`, `"alwaysAllow": ["x"]`, `"autoApprove": []`, `"excludedX": []`, `"isActive": true`, `"sandboxEnabled": false`,
		`"chat.mcp.access": "all"`, `"blocked": {"a": [], "b": null}`, `"dev": {"watch": "x"}`, `"name": "x"`, `"version": "1"`, `"gallery": true`, `"startup": false`,
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
	require.Equal(t, []config.Warning{{Field: "projects", Line: 5, Text: "has no effect"}}, file.Warnings)
	require.Len(t, file.Tools, 2, "disabled servers are left out")
	require.Empty(t, file.Tools[0].Deny)
	require.Equal(t, []string{"*"}, file.Tools[1].Allow)
	require.Equal(t, []string{"y", "z"}, file.Tools[1].Deny)
}
