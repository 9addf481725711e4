package stdio

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
)

// The files have what programs write to stderr when they end.
func TestOutputIsReducedToWhyTheProgramEnded(t *testing.T) {
	want := map[string]string{
		"docker-daemon":   "docker: Cannot connect to the Docker daemon at tcp://127.0.0.1:9. Is the docker daemon running?",
		"docker-flag":     "unknown flag: --no-such Usage: docker run [OPTIONS] IMAGE [COMMAND] [ARG...]",
		"docker-image":    "docker: Error response from daemon: pull access denied for mcp/nothing, repository does not exist or may require 'docker login': denied: requested access to the resource is denied.",
		"go-deadlock":     "fatal error: all goroutines are asleep - deadlock!",
		"go-fatal":        "2026/11/29 13:47:44 starting 2026/11/29 13:47:44 listen: listen tcp: address 99999: invalid port",
		"go-panic":        "panic: assignment to entry in nil map",
		"java":            `Exception in thread "main" java.lang.IllegalStateException: the server cannot start Caused by: java.lang.NumberFormatException: Cannot parse null string`,
		"node-cause":      "Error: cannot start [cause]: Error: connect ECONNREFUSED 127.0.0.1:5432",
		"node-listen":     "Error: listen EADDRINUSE: address already in use :::39123",
		"node-module":     "Error: Cannot find module '/srv/mcp/dist/index.js'",
		"node-package":    "Error [ERR_MODULE_NOT_FOUND]: Cannot find package '@modelcontextprotocol/sdk' imported from /srv/esm.mjs",
		"node-rejection":  `UnhandledPromiseRejection: This error originated either by throwing inside of an async function without a catch block, or by rejecting a promise which was not handled with .catch(). The promise rejected with the reason "no token".`,
		"node-syntax":     "SyntaxError: Unexpected token ';'",
		"node-throw":      "Error: BRAVE_API_KEY environment variable is required",
		"node-usage":      "Error: GITHUB_TOKEN is not set Usage: server [options]",
		"npm-404":         "npm error code E404 npm error 404 Not Found - GET https://npm.example/@modelcontextprotocol%2fserver-no-such-1234 npm error 404 The requested resource '@modelcontextprotocol/server-no-such-1234@*' could not be found or you do not have permission to access it. npm error 404 Note that you can also install from a npm error 404 tarball, folder, http url, or git url.",
		"npm-executable":  "npm error could not determine executable to run",
		"npm-version":     "npm error code ETARGET npm error notarget No matching version found for @modelcontextprotocol/server-memory@9999.0.0. npm error notarget In most cases you or one of your dependencies are requesting a package version that doesn't exist.",
		"python-chain":    "FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file.json' RuntimeError: the configuration cannot be read: set CONFIG_PATH",
		"python-file":     "/usr/bin/python3: can't open file '/srv/no/server.py': [Errno 2] No such file or directory",
		"python-group":    "ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception) ValueError: no database at localhost:5432",
		"python-key":      "KeyError: 'API_KEY'",
		"python-module":   "/usr/bin/python3: No module named no_such_module",
		"python-pydantic": "ValueError: 2 validation errors for Settings api_key Field required [type=missing, input_value={}, input_type=dict] For further information visit https://errors.pydantic.dev/2.11/v/missing url Field required [type=missing]",
		"rust-error":      `Error: Os { code: 2, kind: NotFound, message: "No such file or directory" }`,
		"rust-panic":      "thread 'main' (4784) panicked at rs/a.rs:1:46: API_KEY must be set: NotPresent",
		"sh":              "sh: 1: no-such-program: not found",
		"uv-network":      "error: Failed to fetch: `https://pypi.example/simple/mcp-server-git/` Caused by: Request failed after 3 retries Caused by: error sending request for url (https://pypi.example/simple/mcp-server-git/) Caused by: client error (Connect) Caused by: dns error Caused by: failed to lookup address information: Temporary failure in name resolution",
		"uv-resolution":   "Using CPython 3.12.3 interpreter at: /usr/bin/python3.12 × No solution found when resolving tool dependencies: ╰─▶ Because mcp-server-nothing was not found in the package registry and you require mcp-server-nothing, we can conclude that your requirements are unsatisfiable.",
		"uv-spawn":        "error: Failed to spawn: `mcp-server` Caused by: No such file or directory (os error 2)",
	}
	files, err := filepath.Glob("testdata/ends/*.txt")
	require.NoError(t, err)
	require.Len(t, files, len(want))
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		output, err := os.ReadFile(file)
		require.NoError(t, err)
		for ending, before := range map[string]string{"\n": "", "\r\n": strings.Repeat("\x1b[32minfo\x1b[0m listening\n", 2000)} {
			var tail tail
			tail.write([]byte(before + strings.ReplaceAll(string(output), "\n", ending)))
			got := tail.last(redact.MaxDetail-len("…"), "hunter22")
			if before != "" && !reason.MatchString(want[name]) { // else the end of the output says it
				require.True(t, strings.HasSuffix(got, want[name]), "%s: %s", name, got)
				continue
			}
			require.Equal(t, want[name], got, name)
		}
	}
}

// A long stack may follow the line that says why, or many such lines.
func TestLineThatSaysWhyIsKeptOfALongOutput(t *testing.T) {
	for output, want := range map[string]string{
		"Error: one\n" + strings.Repeat("    at Module._load (node:internal/modules/cjs/loader:1143:27)\n", 200):                                               "Error: one",
		"fatal error: all asleep\n\n" + strings.Repeat("goroutine 7 [select]:\nmain.f()\n\t/srv/a.go:3 +0x1\n\n", 300):                                         "fatal error: all asleep",
		strings.Repeat("ERROR: connect ECONNREFUSED\n", 100) + "giving up\n":                                                                                   "ERROR: connect ECONNREFUSED giving up",
		"error: old\n" + strings.Repeat("word ", 100) + "\nthe end says it\n":                                                                                  "error: old …word",
		"Error: " + strings.Repeat("long ", 200) + "\nthe end":                                                                                                 "Error: long long",
		"Error: the token hunter\n22 is refused\n" + strings.Repeat("word ", 100):                                                                              "Error: the token … is refused …word",
		strings.Repeat("x", 9000) + "throw Error('Error: old');" + strings.Repeat("x", 9000) + "\n  ^\n\nError: new\n    at a (b.js:1:2)\n\nNode.js v20.1.0\n": "Error: new",
		strings.Repeat("x", 400): "…xxx",
	} {
		var tail tail
		tail.write([]byte(output))
		got := tail.last(200, "hunter22")
		require.True(t, strings.HasPrefix(got, want), got)
		require.LessOrEqual(t, len(got), 200+len("…"))
		if strings.HasSuffix(strings.TrimSpace(output), "says it") {
			require.True(t, strings.HasSuffix(got, "the end says it"), got)
		}
	}
}
