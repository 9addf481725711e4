package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/config"
)

func TestAllErrorsAreReportedAtOnceWithTheirLines(t *testing.T) {
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
	require.ErrorContains(t, err, path+": is not valid JSON: line 1")
	toml := filepath.Join(t.TempDir(), "config.toml")
	require.NoError(t, os.WriteFile(toml, []byte("[mcp_servers.a]\ncommand = \"x\"\n"), 0o600))
	_, err = config.Load(toml)
	require.EqualError(t, err, toml+": is TOML: write its servers into a file in JSON or YAML")
	_, err = config.Load(path + ".not")
	require.ErrorIs(t, err, os.ErrNotExist)
}
