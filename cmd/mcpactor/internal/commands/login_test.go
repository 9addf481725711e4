package commands

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
)

func TestLoginIsForServersWithoutOtherCredentials(t *testing.T) {
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "servers.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"mcpServers": {
		"hosted": {"url": "https://a.example/mcp"},
		"command": {"command": "true"},
		"scoped": {"url": "https://a.example/${scope}"},
		"off": {"url": "https://b.example/mcp", "oauth": false},
		"token": {"url": "https://a.example/mcp", "headers": {"Authorization": "Bearer secret"}}
	}}`), 0o600))
	p := &cli.Program{In: strings.NewReader(""), Out: io.Discard, Err: io.Discard}
	for name, want := range map[string]string{
		"hosted": "", "command": "only a server at a URL", "scoped": "only a server at a URL", "token": "has credentials in the file",
		"off": "says that it has no login", "hostde": `did you mean "hosted"`,
	} {
		srv, _, err := (&loginTarget{Server: name, Config: file}).find(p)
		if want != "" {
			require.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "https://a.example/mcp", srv.URL)
		require.NotNil(t, srv.Auth)
	}
	loaded, err := inputs.NewLoader(inputs.Flags{}, p).First(file)
	require.NoError(t, err)
	off, err := serverIn(loaded, "off")
	require.NoError(t, err)
	require.Nil(t, off.Auth, "nobody is told to log in")
	_, _, err = (&loginTarget{Server: "hosted"}).find(p)
	require.ErrorContains(t, err, "is no URL")
}
