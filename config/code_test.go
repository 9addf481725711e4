package config_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Whoever chooses the scope must not choose what a program runs.
func TestScopeIsNoArgumentThatIsRunAsCode(t *testing.T) {
	for _, c := range []struct {
		server string
		at     int // the argument
		why    string
	}{
		{`"command": "sh", "args": ["-c", "ls ${scope}"]`, 1, "sh would run"},
		{`"command": "sh", "args": ["-ce", "ls ${scope}"]`, 1, "sh would run"},
		{`"command": "sh", "args": ["-c${scope}"]`, 0, "sh would run"},
		{`"command": "sh", "args": ["-c", "--", "ls ${scope}"]`, 2, "sh would run"},
		{`"command": "sh", "args": ["-c", "ls \"$0\"", "${scope}"]`, 2, "sh would run"},
		{`"command": "sh", "args": ["${scope}"]`, 0, "the scope would name what sh runs"},
		{`"command": "bash", "args": ["-c", "-x", "+B", "ls ${scope}"]`, 3, "bash would run"},
		{`"command": "bash", "args": ["-c", "-o", "pipefail", "ls ${scope}"]`, 3, "bash would run"},
		{`"command": "bash", "args": ["-co", "pipefail", "${scope}"]`, 2, "bash would run"},
		{`"command": "bash", "args": ["+c", "${scope}"]`, 1, "bash would run"},
		{`"command": "/usr/bin/bash-5.2", "args": ["-lc", "${scope}"]`, 1, "bash would run"},
		{`"command": "C:\\Windows\\CMD.EXE", "args": ["/d/s/c", "server", "${scope}"]`, 2, "cmd would run"},
		{`"command": "cmd", "args": ["/s /c", "server", "${scope}"]`, 2, "cmd would run"},
		{`"command": "powershell", "args": ["-comm", "server", "${scope}"]`, 2, "powershell would run"},
		{`"command": "powershell", "args": ["server", "${scope}"]`, 1, "powershell would run"},
		{`"command": "pwsh", "args": ["-File", "x.ps1", "${scope}"]`, 2, "pwsh would run"},
		{`"command": "wsl", "args": ["server", "${scope}"]`, 1, "wsl would run"},
		{`"command": "ssh", "args": ["host", "server", "${scope}"]`, 2, "ssh would run"},
		{`"command": "make", "args": ["run", "USER=${scope}"]`, 1, "make would run"},
		{`"command": "su", "args": ["ann", "--command=ls ${scope}"]`, 1, "su would run"},
		{`"command": "npx", "args": ["--call", "server ${scope}"]`, 1, "npx would run"},
		{`"command": "npx", "args": ["--call=server ${scope}"]`, 0, "npx would run"},
		{`"command": "npx", "args": ["-y", "-c", "${scope}"]`, 2, "npx would run"},
		{`"command": "npx", "args": ["-y", "${scope}"]`, 1, "the scope would name what npx runs"},
		{`"command": "npx", "args": ["-y", "@acme/server-${scope}"]`, 1, "the scope would name what npx runs"},
		{`"command": "uvx", "args": ["server-${scope}"]`, 0, "the scope would name what uvx runs"},
		{`"command": "node", "args": ["-e", "run('${scope}')"]`, 1, "node would run"},
		{`"command": "node", "args": ["-pe", "${scope}"]`, 1, "node would run"},
		{`"command": "node", "args": ["--ev=${scope}"]`, 0, "node would run"},
		{`"command": "deno", "args": ["eval", "${scope}"]`, 1, "deno would run"},
		{`"command": "bun", "args": ["--print", "${scope}"]`, 1, "bun would run"},
		{`"command": "python3.12", "args": ["-Ic", "${scope}"]`, 1, "python would run"},
		{`"command": "python", "args": ["-m", "${scope}"]`, 1, "the scope would name what python runs"},
		{`"command": "perl", "args": ["-lne", "${scope}"]`, 1, "perl would run"},
		{`"command": "ruby", "args": ["-e", "${scope}"]`, 1, "ruby would run"},
		{`"command": "env", "args": ["-S", "${scope}"]`, 1, "env would run"},
		{`"command": "env", "args": ["A=b", "${scope}"]`, 1, "the scope would name what env runs"},
		{`"command": "env", "args": ["A=b", "sh", "-c", "${scope}"]`, 3, "sh would run"},
		{`"command": "sudo", "args": ["-u", "ann", "bash", "-c", "${scope}"]`, 4, "bash would run"},
		{`"command": "timeout", "args": ["5", "${scope}"]`, 1, "the scope would name what timeout runs"},
		{`"command": "nice", "args": ["-n", "5", "sh", "-c", "${scope}"]`, 4, "sh would run"},
		{`"command": "xargs", "args": ["-I{}", "sh", "-c", "${scope}"]`, 3, "sh would run"},
		{`"command": "docker", "args": ["run", "-i", "image", "sh", "-c", "${scope}"]`, 5, "sh would run"},
		{`"command": "docker", "args": ["run", "-i", "image", "/bin/sh", "-ec", "server --user ${scope}"]`, 5, "sh would run"},
		{`"command": "uv", "args": ["run", "python", "-c", "${scope}"]`, 3, "python would run"},
		{`"command": "own-shell", "args": ["-c", "${scope}"]`, 1, "the program would run the scope as code after -c"},
		{`"command": "server", "args": ["--config={\"user\":\"${scope}\"}"]`, 0, "beside ${scope} an argument may have"},
		{`"command": "server", "args": ["select ${scope}"]`, 0, "beside ${scope} an argument may have"},
		{`"command": "server", "args": ["$(${scope})"]`, 0, "beside ${scope} an argument may have"},
		{`"command": "${SHELL_OF_TEST:-/bin/bash}", "args": ["${OPTION_OF_TEST:--c}", "${scope}"]`, 1, "bash would run"},
	} {
		_, err := parse("{\"mcpServers\": {\"a\": {\n" + c.server + "}}}")
		require.ErrorContains(t, err, fmt.Sprintf("line 2: mcpServers.a.args[%d]: %s", c.at, c.why), c.server)
		require.ErrorContains(t, err, "env", c.server)
	}
	_, err := parse(`{"mcpServers": {"a": {"command": ["bash", "-lc", "ls ${scope}"]}}}`)
	require.ErrorContains(t, err, "a.command[2]: bash would run")
	_, err = parse(`{"mcpServers": {"a": {"command": {"path": "bash", "args": ["-lc", "ls ${scope}"]}}}}`)
	require.ErrorContains(t, err, "a.command.args[1]: bash would run")
}

func TestScopeIsAnArgumentOfAServer(t *testing.T) {
	for _, server := range []string{
		`"command": "server", "args": ["--user", "${scope}", "--root=/srv/${scope}/x", "--as=${scope}@example.com", "${scope}"]`,
		`"command": "server", "args": ["-c", "x.yaml", "--user", "${scope}"]`,
		`"command": "node", "args": ["--enable-source-maps", "server.js", "--user", "${scope}"]`,
		`"command": "npx", "args": ["-y", "@acme/server", "${scope}", "/data/${scope}"]`,
		`"command": "npx", "args": ["-y", "-p", "@acme/server", "server", "--user=${scope}"]`,
		`"command": "uvx", "args": ["--from", "acme-server", "server", "${scope}"]`,
		`"command": "uv", "args": ["run", "--directory", "/srv", "server.py", "${scope}"]`,
		`"command": "python", "args": ["-m", "server", "${scope}"]`,
		`"command": "python", "args": ["server.py", "${scope}"]`,
		`"command": "bash", "args": ["server.sh", "${scope}"]`,
		`"command": "deno", "args": ["run", "-A", "server.ts", "${scope}"]`,
		`"command": "docker", "args": ["run", "--rm", "-i", "-e", "USER_ID=${scope}", "-v", "/srv/${scope}:/data", "image", "--user", "${scope}"]`,
		`"command": "docker", "args": ["run", "-e", "A=${scope}", "image", "sh", "-c", "exec server"]`,
		`"command": "sh", "args": ["-c", "exec server --user \"$WHO\""], "env": {"WHO": "${scope}"}`,
		`"command": "sudo", "args": ["-u", "mcp", "server", "${scope}"]`,
	} {
		got, err := ofScope(t, serverWith(t, "{%s}", server), "ann")
		require.NoError(t, err, server)
		require.Contains(t, fmt.Sprint(got.Args, got.Env), "ann", server)
	}
}
