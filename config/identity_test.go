package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/pin"
)

// Secrets are in variables, and stay there: what a file says of a server has their names.
func TestIdentityOfAServerIsWhatTheFileSays(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "more.env"), []byte("FROM_FILE=x\n"), 0o600))
	environment := func(string) (string, bool) { return "hush", true }
	for entry, want := range map[string]pin.Identity{
		`{"command": "npx", "args": ["-y", "server@${V}", "${scope}"], "env": {"NODE_OPTIONS": "${X}", "A": "b"}, "envFile": "more.env", "cwd": "${HOME}/x"}`: {
			Command: []string{"npx", "-y", "server@${V}", "${scope}"}, Dir: "${HOME}/x", Env: []string{"A", "FROM_FILE", "NODE_OPTIONS"},
		},
		`{"command": ["npx", "server"]}`:                                      {Command: []string{"npx", "server"}},
		`{"command": {"path": "~/server", "args": ["x"], "env": {"A": ""}}}`:  {Command: []string{"~/server", "x"}, Env: []string{"A"}},
		`{"url": "https://example.com/${TENANT}/mcp", "headers": {"A": "x"}}`: {URL: "https://example.com/${TENANT}/mcp"},
		`{"command": "docker", "args": ["run", "--name", "{session}"], "cleanup": {"command": "docker", "args": ["rm", "{session}"]}}`: {
			Command: []string{"docker", "run", "--name", "{session}"}, Cleanup: []string{"docker", "rm", "{session}"},
		},
		`{"command": "x", "setup": [{"tool": "login", "arguments": {"token": "${TOKEN}", "n": [1.0, true, null, "a"]}}]}`: {
			Command: []string{"x"}, Setup: []string{`{"arguments":{"n":[1.0,true,null,"a"],"token":"${TOKEN}"},"tool":"login"}`},
		},
		`{"command": "x", "handles": [{"release": "close", "mint": "open", "path": "id", "max": 8}]}`: {
			Command: []string{"x"}, Handles: []string{`{"max":8,"mint":"open","path":"id","release":"close"}`},
		},
		`{"httpUrl": "https://example.com/mcp"}`:   {URL: "https://example.com/mcp"},
		`{"serverUrl": "https://example.com/mcp"}`: {URL: "https://example.com/mcp"},
	} {
		path := filepath.Join(folder, "mcp.json")
		require.NoError(t, os.WriteFile(path, []byte(`{"mcpServers": {"the server": `+entry+`, "off": {"command": "x", "disabled": true}, "odd": {}}}`), 0o600))
		got := map[string]pin.Identity{}
		loader := config.Loader{LookupEnv: environment, LeaveOut: true, Accept: func(server string, is pin.Identity) error {
			got[server] = is
			return nil
		}}
		_, err := loader.Load(path)
		require.NoError(t, err, entry)
		require.Equal(t, map[string]pin.Identity{"the-server": want}, got)
	}
}

func TestServerThatIsNotAcceptedIsLeftOut(t *testing.T) {
	loader := config.Loader{LeaveOut: true, Accept: func(server string, _ pin.Identity) error {
		if server == "a" {
			return errors.New("is another one")
		}
		return nil
	}}
	const text = "{\"mcpServers\": {\n\"a\": {\"command\": \"x\"},\n\"b\": {\"command\": \"x\"}}}"
	file, err := loader.Parse([]byte(text))
	require.NoError(t, err)
	require.Len(t, file.Supervisor.Servers, 1)
	require.Equal(t, "line 2: mcpServers.a: is another one; the server is left out", file.Warnings[0].String())
	require.Equal(t, "a", file.Warnings[0].Server)
	loader.LeaveOut = false
	_, err = loader.Parse([]byte(text))
	require.EqualError(t, err, "line 2: mcpServers.a: is another one")
}
