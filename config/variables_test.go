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

// H-H: a variable without a value is never sent to a server literally.
func TestVariablesThatCannotBeReplacedAreErrors(t *testing.T) {
	for value, want := range map[string]string{
		"${env:NOT_SET}":          "the environment variable NOT_SET is not set",
		"${NOT_SET}":              "the environment variable NOT_SET is not set: set it, or write ${NOT_SET:-default}",
		"${input:key}":            `needs the input "key"`,
		"${command:x.y}":          "has an unknown form of ${…}",
		"${config:x}":             "has an unknown form of ${…}",
		"${{ secrets.X }}":        "has an unknown form of ${…}",
		"${}":                     "has an unknown form of ${…}",
		"${A-b}":                  "has an unknown form of ${…}",
		"${TOKEN:?}":              "has an unknown form of ${…}",
		"${NOT_SET:-${TOKEN}}":    "has an unknown form of ${…}",
		"${workspaceFolder}":      "the workspace folder is unknown",
		"${workspaceFolder:a}/b":  "the workspace folder is unknown",
		"${file:no/such}":         "open no",
		"Bearer ${TOKEN":          "has a ${ without a closing }",
		"{env:TOKEN}":             "{env:…} is supported only in files of opencode",
		"{file:/etc/hostname}":    "{file:…} is supported only in files of opencode",
		"$TOKEN":                  "$TOKEN is not supported: write ${TOKEN}",
		"Bearer $TOKEN":           "$TOKEN is not supported",
		"pa$word":                 "$word is not supported",
		"{{TOKEN}}":               "{{TOKEN}} is a value of each user",
		"Bearer {{ MY_API_KEY }}": "{{MY_API_KEY}} is a value of each user",
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

func TestInvalidEnvironmentFilesAreErrors(t *testing.T) {
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
		require.ErrorContains(t, err, "of the file is invalid", text)
	}
}

// A file of VS Code with inputs: each is asked for once, and a server without one is left out.
func TestInputsAreSuppliedByAFunction(t *testing.T) {
	const file = `{
		"inputs": [
			{"type": "promptString", "id": "key", "description": "The key", "password": true},
			{"type": "pickString", "id": "mode", "options": ["a", {"label": "B", "value": "b"}], "default": "a"}
		],
		"servers": {
			"one": {"command": "x", "env": {"KEY": "${input:key}", "MODE": "${input:mode}"}},
			"two": {"url": "http://x/${input:key}"},
			"three": {"url": "${input:other}", "deny": ["x"]},
			"off": {"url": "${input:unused}", "disabled": true},
			"four": {"command": "y"}
		}
	}`
	var asked []config.Input
	loader := config.Loader{Input: func(in config.Input) (string, bool) {
		asked = append(asked, in)
		return "value of " + in.ID, in.ID != "other"
	}}
	got, err := loader.Parse([]byte(file))
	require.NoError(t, err)
	require.ElementsMatch(t, []config.Input{
		{ID: "key", Description: "The key", Password: true}, {ID: "mode", Default: "a", Options: []string{"a", "b"}}, {ID: "other"},
	}, asked)
	var names []string
	for _, srv := range got.Supervisor.Servers {
		names = append(names, srv.Name)
	}
	require.Equal(t, []string{"four", "one", "two"}, names)
	require.Equal(t, map[string]string{"KEY": "value of key", "MODE": "value of mode"}, got.Supervisor.Servers[1].Env)
	require.Len(t, got.Tools, 3)
	require.Equal(t, []config.Input{{ID: "key", Description: "The key", Password: true}, {ID: "mode", Default: "a", Options: []string{"a", "b"}}}, got.Inputs)
	require.Len(t, got.Warnings, 1)
	require.Equal(t, `line 9: servers.three.url: needs the input "other": Loader.Input has to return it; the server is left out`, got.Warnings[0].String())
	require.Equal(t, "three", got.Warnings[0].Server)

	_, err = config.Loader{}.Parse([]byte(`{"servers": {"one": {"url": "${input:key}"}}}`))
	require.ErrorContains(t, err, `servers.one.url: needs the input "key"`)
	got, err = config.Loader{}.Parse([]byte(file))
	require.NoError(t, err)
	require.Equal(t, "four", got.Supervisor.Servers[0].Name)
	_, err = config.Loader{}.Parse([]byte(`{"servers": {"a": {"command": "x"}}, "supervisor": {"store": "${input:key}"}}`))
	require.ErrorContains(t, err, "needs the input")
}
