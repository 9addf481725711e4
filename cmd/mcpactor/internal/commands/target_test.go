package commands

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
	"github.com/mcpactor/mcpactor/toolset"
)

// stdioVar makes the test binary a server over stdio.
const stdioVar = "MCPACTOR_TEST_SERVER"

// outcome is what came of a command line.
type outcome struct {
	status   int
	out, log string
}

func outcomeOf(args ...string) outcome {
	var out, log strings.Builder
	status := run(args, nil, &out, &log)
	return outcome{status, out.String(), log.String()}
}

// A server at a URL or of a command needs no file, and its tools keep their names.
func TestServerNeedsNoFile(t *testing.T) {
	url := servertest.Serve(t, servertest.NewTools("plain", "bad.name"))
	t.Setenv(stdioVar, "1")
	self, err := os.Executable()
	require.NoError(t, err)
	for name, server := range map[string]struct{ before, after []string }{
		"a URL":     {[]string{url}, nil},
		"a command": {nil, []string{"--", self, "--json"}},
	} {
		t.Run(name, func(t *testing.T) {
			command := func(words ...string) outcome {
				words = append(append(words[:1:1], server.before...), words[1:]...)
				return outcomeOf(append(words, server.after...)...)
			}
			got := command("tools")
			require.Equal(t, cli.ExitOK, got.status, got.log)
			require.Equal(t, []string{"NAME ABOUT", "bad.name Title of bad.name", "plain Title of plain"}, squeezed(got.out))
			got = command("tools", "bad.name")
			require.Equal(t, cli.ExitOK, got.status, got.log)
			require.Contains(t, got.out, "bad.name  Title of bad.name\n")
			got = command("tools", "--json", "plain")
			require.Contains(t, got.out, `"name":"plain"`)

			got = command("call", "bad.name")
			require.Equal(t, outcome{cli.ExitOK, "bad.name\n", ""}, got)
			got = command("call", "plain", "a=1", "--json", "--timeout", "20s", "b:=[2]")
			require.Equal(t, cli.ExitOK, got.status, got.log)
			require.True(t, json.Valid([]byte(got.out)))
			got = command("call", "plian")
			require.Contains(t, got.log, `did you mean "plain"?`)

			got = command("doctor", "--json")
			require.Equal(t, cli.ExitOK, got.status, got.log)
			var found struct{ Servers []diagnosis }
			require.NoError(t, json.Unmarshal([]byte(got.out), &found))
			require.Len(t, found.Servers, 1)
			require.True(t, found.Servers[0].Works)
			require.Equal(t, 2, found.Servers[0].Tools)
			require.Equal(t, "test", found.Servers[0].Implementation.Name)
		})
	}
}

// What the command tools shows is what call takes, also where the name of a server is the beginning of another one.
func TestCallTakesTheNameThatToolsShows(t *testing.T) {
	file := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"a": {"url": %q}, "a__b": {"url": %q}, "c.d": {"url": %q}, "down__x": {"url": "http://127.0.0.1:1"}, "lacks": {"command": 7}}}`,
		servertest.Serve(t, servertest.NewTools("b__c", "only")), servertest.Serve(t, servertest.NewTools("c")), servertest.Serve(t, servertest.NewTools("tool"))))
	for name, want := range map[string]string{
		"a__b__c": "b__c", "a__only": "only", toolset.SafeName("a__b", "c"): "c", toolset.SafeName("c.d", "tool"): "tool",
	} {
		got := outcomeOf("call", "--config", file, name, "x=1")
		require.Equal(t, cli.ExitOK, got.status, "%s: %s", name, got.log)
		require.Equal(t, want+"\n", got.out)
		got = outcomeOf("tools", "--config", file, name)
		require.Equal(t, cli.ExitOK, got.status, "%s: %s", name, got.log)
		require.True(t, strings.HasPrefix(got.out, name+" "), got.out)
	}
	for words, want := range map[string]string{
		"a":          "a: give the name of a tool as well: mcpactor tools --config FILE a lists them",
		"a x=1":      "a: give the name of a tool as well",
		"other x=1":  "other: write SERVER__TOOL: mcpactor tools --config FILE lists these names",
		"lacks__x":   "mcpServers.lacks.command: ",
		"ab__c":      `there is no server "ab__c"`,
		"down__x__y": "connection refused",
		"":           "give the name of a tool: mcpactor tools lists them",
	} {
		got := outcomeOf(append([]string{"call", "--config", file}, strings.Fields(words)...)...)
		require.NotEqual(t, cli.ExitOK, got.status, words)
		require.Contains(t, got.log, strings.ReplaceAll(want, "FILE", file), words)
	}
}

func TestBadTargetsNameWhatToWrite(t *testing.T) {
	file := servertest.File(t, `{"mcpServers": {"a": {"url": "http://127.0.0.1:1"}}}`)
	for line, want := range map[string]string{
		"doctor":                             "give a URL, or a command after --, or --config FILE",
		"doctor FILE":                        `"FILE" is no URL: give a URL, or a command after --, or --config FILE`,
		"doctor --":                          "write the command of the server after --",
		"doctor http://a.example b":          `"b" is too much: give one URL, or one command after --`,
		"doctor x -- npx":                    `"x" is too much`,
		"doctor --config FILE a":             `"a" is too much: doctor tries all servers of the file`,
		"doctor localhost:8090/mcp":          `"localhost:8090/mcp" is no URL: did you mean "http://localhost:8090/mcp"?`,
		"tools --config FILE a b":            `"b" is too much: give the name of one server or one tool`,
		"tools --config FILE -- npx":         "give a server or --config, not both",
		"call --config FILE http://a.x tool": "give a server or --config, not both",
		"call http://a.example":              "give the name of a tool",
		"call -- npx":                        "give the name of a tool",
		"call tool":                          `"tool" is no URL`,
		"tools http:/a":                      "the URL is malformed: write it as in https://example.com/mcp",
		"tools http://":                      "the URL is malformed",
		"tools --header A=b -- npx":          "--header: is for a server at a URL",
		"tools --input a=b http://a.example": "--input: is for --config FILE",
		"tools http://user:word@a.example":   "without encryption: use https",
	} {
		got := outcomeOf(strings.Fields(strings.ReplaceAll(line, "FILE", file))...)
		require.Equal(t, cli.ExitUsage, got.status, line)
		require.Contains(t, got.log, strings.ReplaceAll(want, `"FILE"`, `"`+file+`"`), line)
		require.NotContains(t, got.log, "word")
		require.Empty(t, got.out)
	}
	got := outcomeOf("tools", "--", "")
	require.Equal(t, cli.ExitUsage, got.status)
	require.Contains(t, got.log, "the command of the server is empty")
}

// No command but login opens a browser.
func TestServerThatWantsALoginIsNamedWithTheCommand(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(s.Close)
	for _, words := range [][]string{{"tools"}, {"call", "x"}, {"doctor"}} {
		got := outcomeOf(append(append(words[:1:1], s.URL), words[1:]...)...)
		require.Equal(t, cli.ExitFailed, got.status)
		require.Contains(t, got.out+got.log, "nobody has logged in; run: mcpactor login "+s.URL)
		got = outcomeOf(append(append(words[:1:1], s.URL+"/?key=hush"), words[1:]...)...)
		require.Contains(t, got.out+got.log, "nobody has logged in; run: mcpactor login URL")
		require.NotContains(t, got.out+got.log, "hush")
	}
}

func TestHeaderOfAURLIsSent(t *testing.T) {
	server := servertest.NewTools("a")
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	guarded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("X-Key") != "hush" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, req)
	}))
	t.Cleanup(guarded.Close)
	t.Setenv("COMMANDS_TEST_KEY", "hush")
	got := outcomeOf("call", guarded.URL, "--header", "X-Key=${COMMANDS_TEST_KEY}", "a")
	require.Equal(t, outcome{cli.ExitOK, "a\n", ""}, got)
}

// The command is looked up as a shell does, and has the environment of the user.
func TestCommandRunsWhereTheUserIs(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "says"), []byte("#!/bin/sh\necho \"Error: no $WORD\" >&2; exit 3\n"), 0o700))
	t.Chdir(folder)
	t.Setenv("WORD", "luck")
	got := outcomeOf("doctor", "--", "./says")
	require.Equal(t, cli.ExitFailed, got.status)
	require.Contains(t, got.out, "exited with status 3: Error: no luck; check its command")
}
