package serve

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/toolset"
)

// parsed returns what a command line serves.
func parsed(t *testing.T, args ...string) (planned *plan, err error) {
	var program struct {
		Serve probe `cmd:""`
	}
	program.Serve.seen = func(c *plan, e error) { planned, err = c, e }
	var log bytes.Buffer
	p := &cli.Program{Name: "mcpactor", In: &bytes.Buffer{}, Out: &log, Err: &log}
	require.Equal(t, cli.ExitOK, p.Run(&program, append([]string{"serve"}, args...)), log.String())
	return planned, err
}

// probe is the command, which serves nothing.
type probe struct {
	Serve `embed:""`
	seen  func(*plan, error)
}

func (p *probe) Run(program *cli.Program) error {
	p.seen(p.plan(program))
	return nil
}

func TestFlagsSayWhichToolsAreListed(t *testing.T) {
	cfg, err := parsed(t, "--", "npx")
	require.NoError(t, err)
	require.Equal(t, toolset.Append, cfg.gateway.Stability)
	require.Zero(t, cfg.gateway.Find)
	cfg, err = parsed(t, "--find", "7", "--find-calls", "--stability", "freeze", "--", "npx")
	require.NoError(t, err)
	require.Equal(t, toolset.Freeze, cfg.gateway.Stability)
	require.Equal(t, 7, cfg.gateway.Find)
	require.True(t, cfg.gateway.FindCalls)
}

func TestCommandLineNamesWhatIsServed(t *testing.T) {
	cfg, err := parsed(t, "--no-cache", "--", "npx", "-y", "@modelcontextprotocol/server-memory@2", "--flag")
	require.NoError(t, err)
	require.False(t, cfg.gateway.Prefixed)
	srv := cfg.supervisor.Servers[0]
	require.Equal(t, "server-memory", srv.Name)
	require.Equal(t, "npx", srv.Command)
	require.Equal(t, []string{"-y", "@modelcontextprotocol/server-memory@2", "--flag"}, srv.Args)
	require.True(t, srv.InheritEnv, "the client has set the environment for the server")

	t.Setenv("SERVE_TEST_TOKEN", "hush")
	cfg, err = parsed(t, "--header", "Authorization=Bearer ${SERVE_TEST_TOKEN}", "https://example.com/mcp")
	require.NoError(t, err)
	require.Equal(t, "example.com", cfg.supervisor.Servers[0].Name)
	require.Equal(t, map[string]string{"Authorization": "Bearer hush"}, cfg.supervisor.Servers[0].Headers)

	file := filepath.Join(t.TempDir(), "mcp.json")
	require.NoError(t, os.WriteFile(file, []byte(`{"mcpServers": {"one": {"command": "a"}, "two": {"command": "b"}, "off": {"command": "c", "disabled": true}}}`), 0o600))
	cfg, err = parsed(t, "--listen", "127.0.0.1:0", "--config", file, "--share", "two")
	require.NoError(t, err)
	require.True(t, cfg.gateway.Prefixed)
	require.Len(t, cfg.gateway.Servers, 2)
	require.Empty(t, cfg.gateway.Servers[0].Scope)
	require.Equal(t, config.SharedScope, cfg.gateway.Servers[1].Scope)
	cfg, err = parsed(t, "--listen", "127.0.0.1:0", "--config", file, "--share", "all")
	require.NoError(t, err)
	require.Equal(t, config.SharedScope, cfg.gateway.Servers[0].Scope)
	require.Equal(t, config.SharedScope, cfg.gateway.Servers[1].Scope)

	sharing := filepath.Join(t.TempDir(), "sharing.json")
	require.NoError(t, os.WriteFile(sharing, []byte(`{"mcpServers": {"one": {"command": "a", "share": true}, "two": {"command": "b"}}}`), 0o600))
	cfg, err = parsed(t, "--listen", "127.0.0.1:0", "--config", sharing)
	require.NoError(t, err)
	require.Equal(t, config.SharedScope, cfg.gateway.Servers[0].Scope)
	require.Empty(t, cfg.gateway.Servers[1].Scope)

	minting := filepath.Join(t.TempDir(), "minting.json")
	mints := func(more string) string {
		return `{"mcpServers": {"one": {"command": "a"}, "web": {"command": "b", "handles": [
			{"mint": "new_tab", "path": "tab_id", "release": "close_tab", "idle": "30m"},
			{"mint": "open_browser", "path": "browser_id", "release": "close_browser"` + more + `}]}}}`
	}
	require.NoError(t, os.WriteFile(minting, []byte(mints("")), 0o600))
	cfg, err = parsed(t, "--config", minting)
	require.NoError(t, err, "over stdio, the end of the input releases them")
	require.Equal(t, 30*time.Minute, longestIdle(cfg.supervisor.Servers))
	idle := filepath.Join(t.TempDir(), "idle.json")
	require.NoError(t, os.WriteFile(idle, []byte(mints(`, "idle": "2h"`)), 0o600))
	cfg, err = parsed(t, "--listen", "127.0.0.1:0", "--config", idle)
	require.NoError(t, err)
	require.Equal(t, 2*time.Hour, longestIdle(cfg.supervisor.Servers))

	itself := filepath.Join(t.TempDir(), "itself.json")
	require.NoError(t, os.WriteFile(itself, fmt.Appendf(nil, `{"mcpServers": {"all": {"command": "mcpactor", "args": ["serve", "--config", %q]}, "one": {"command": "a"}}}`, itself), 0o600))
	for want, args := range map[string][]string{
		"give a URL, or a command":     {},
		"not both":                     {"--config", file, "--", "npx"},
		"--wait: must not be negative": {"--wait=-1s", "--", "npx"},
		"--find: must not be negative": {"--find=-1", "--", "npx"},
		"--find-calls: needs --find":   {"--find-calls", "--", "npx"},
		"admin/drop: there is no such": {"--deny", "admin/drop", "--", "npx"},
		"there is no server":           {"--listen", "127.0.0.1:0", "--share", "x", "--", "npx"},
		"--share: needs --listen":      {"--share", "all", "--", "npx"},
		`"one" has share, which needs`: {"--config", sharing},
		`server "web": handles[1].idle: is missing: clients of --listen may have no connection whose end releases what open_browser mints: write how long`: {
			"--listen", "127.0.0.1:0", "--config", minting,
		},
		"is for a server at a URL":      {"--header", "a=b", "--", "npx"},
		"SERVE_TEST_NOTHING is not set": {"--header", "a=${SERVE_TEST_NOTHING}", "https://example.com"},
		"give one URL":                  {"https://example.com", "https://example.org"},
		"the URL is malformed":          {"http:/example.com"},
		"would start itself":            {"--config", itself},
		"write flags before the URL":    {"https://example.com", "--header", "a=b"},
		"unknown flag --nonsense":       {"--nonsense", "--", "npx"},
		"--pin: there is no file":       {"--pin", itself + ".lock", "--", "npx"},
		"the lock file is invalid":      {"--pin", file, "--config", file},
	} {
		_, err := parsed(t, args...)
		require.ErrorContains(t, err, want)
	}
}
