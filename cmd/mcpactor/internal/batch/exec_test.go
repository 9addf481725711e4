package batch

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
)

func TestInvalidUsageExitsWithTwo(t *testing.T) {
	empty := configured(t, `{"mcpServers": {"a": {}}}`)
	for want, args := range map[string][]string{
		"no such file": {"exec", "--config", "/no/such/file"},
		"mcpServers.a.command: is empty, and so is url": {"exec", "--config", empty},
		"--parallel: 0 is less than 1":                  {"exec", "--config", empty, "--parallel", "0"},
		"--timeout: 0s is not greater than 0":           {"tools", "--config", empty, "--timeout", "0s"},
		"--scope: has a control character":              {"tools", "--config", empty, "--scope", "a\n"},
		"--listen: listen tcp":                          {"exec", "--config", configured(t, `{"mcpServers": {"a": {"url": "http://a.invalid"}}}`), "--listen", "127.0.0.1:none"},
		`--log-level must be one of "debug","info"`:     {"exec", "--config", empty, "--log-level", "loud"},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, cli.ExitUsage, run(args, strings.NewReader(""), &stdout, &stderr), want)
		require.Contains(t, stderr.String(), "mcpactor: ")
		require.Contains(t, stderr.String(), want)
		require.Empty(t, stdout.String(), want)
	}
}
