package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
	"github.com/mcpactor/mcpactor/toolset"
)

func TestTableOfTools(t *testing.T) {
	evil := servertest.NewTools("plain")
	servertest.AddTool(evil, &mcp.Tool{Name: "bad.name", Description: "\n \x1b]0;title\x07one\u009b31m \u202etwo\tthree\nsecond line"})
	servertest.AddTool(evil, &mcp.Tool{Name: "long", Description: strings.Repeat("x", 100)})
	config := servertest.File(t, fmt.Sprintf(`{"mcpServers": {
		"one": {"url": %q, "deny": ["hidden"]},
		"off": {"command": "/no/such", "disabled": true}
	}}`, servertest.Serve(t, evil)))
	var out, log strings.Builder
	require.Equal(t, cli.ExitOK, run([]string{"tools", "--config", config}, nil, &out, &log), log.String())
	require.Empty(t, log.String())
	require.Equal(t, []string{
		"NAME ABOUT",
		toolset.SafeName("one", "bad.name") + " ]0;title one 31m two three",
		"one__long " + strings.Repeat("x", maxAbout-1) + "…",
		"one__plain Title of plain",
	}, squeezed(out.String()))
}

// squeezed returns the lines of a table with one space between the columns.
func squeezed(table string) (lines []string) {
	for line := range strings.Lines(table) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	return lines
}

func TestServerThatCannotBeListedFailsTheCommandButHidesNoOtherServer(t *testing.T) {
	config := servertest.File(t, fmt.Sprintf(
		`{"mcpServers": {"bad": {"command": "/no/such"}, "down": {"url": "http://127.0.0.1:1"}, "one": {"url": %q}}}`, servertest.Serve(t, servertest.NewTools("a"))))
	for _, flag := range []string{"--json", "--scope=x"} {
		var out, log strings.Builder
		began := time.Now()
		require.Equal(t, cli.ExitFailed, run([]string{"tools", "--config", config, "--log-level", "error", flag}, nil, &out, &log))
		require.Less(t, time.Since(began), 20*time.Second, "before the timeout")
		require.Contains(t, log.String(), "mcpactor: bad: unavailable: ")
		require.Regexp(t, `mcpactor: down: unavailable: .*connection refused; check that it runs, and its URL\n`, log.String())
		require.Contains(t, out.String(), "one__a")
	}
}

// E3: the command does not give up before the server does, so that it has the cause.
func TestEachCommandSaysWhatAServerDoesInsteadOfAnswering(t *testing.T) {
	config := servertest.File(t, `{"mcpServers": {"mute": {"command": "sh", "args": ["-c", "echo Listening; sleep 100"]}}}`)
	for _, args := range [][]string{{"tools"}, {"call", "mute", "x"}, {"doctor"}} {
		var out, log strings.Builder
		require.Equal(t, cli.ExitFailed, run(append(args, "--config", config, "--timeout", "2s"), nil, &out, &log))
		require.Regexp(t, `mute(: | +fails.* )unavailable: timed out while connecting: the server writes text to stdout, and no answer: Listening; run its command by hand`, out.String()+log.String())
	}
}

// A name that is not found may be that of a tool whose server could not be listed.
func TestNameThatIsNotFoundIsSaidBesideWhatCouldNotBeListed(t *testing.T) {
	config := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"one": {"url": %q}, "broken": {"command": "no-such-program"}}}`, servertest.Serve(t, servertest.NewTools("a"))))
	for name, want := range map[string]string{"nothing": `"nothing" is no tool and no server`, "broken": ""} {
		var out, log strings.Builder
		require.Equal(t, cli.ExitFailed, run([]string{"tools", "--config", config, name}, nil, &out, &log))
		require.Contains(t, log.String(), want)
		require.Equal(t, want != "", strings.Contains(log.String(), "is no tool"))
		require.Contains(t, log.String(), "mcpactor: broken: unavailable")
	}
}

func TestServersWhoseInputsAreMissingAreNamed(t *testing.T) {
	config := servertest.File(t, fmt.Sprintf(`{"servers": {"one": {"url": %q}, "lacks": {"url": "http://127.0.0.1:1", "headers": {"K": "${input:key}"}}}}`, servertest.Serve(t, servertest.NewTools("a"))))
	for _, args := range [][]string{{"tools"}, {"tools", "lacks"}, {"call", "lacks", "x"}} {
		var out, log strings.Builder
		status := run(append(args, "--config", config), nil, &out, &log)
		require.Equal(t, len(args) == 1, status == cli.ExitOK, "the others are listed")
		require.Equal(t, "mcpactor: "+config+":1: servers.lacks.headers.K: needs the input \"key\": give --input key=VALUE; the server is left out\n", log.String())
		require.Equal(t, len(args) == 1, strings.Contains(out.String(), "one__a"))
	}
}

func TestPrintableRemovesControlCharacters(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                 "plain",
		" a\t\tb\n":             "a b",
		"\x1b[31mred\x1b[0m":    "[31mred [0m",
		"a\u202eb\u200bc\u2028": "a b c",
		"\x9b2J":                "\ufffd2J",
		"\u009b2J\x7f":          "2J",
		"größe 日本 👍":            "größe 日本 👍",
	} {
		require.Equal(t, want, cli.Printable(text))
	}
}

// A tool with a schema that no model could get is named, and can be called all the same.
func TestToolThatIsLeftOutIsNamed(t *testing.T) {
	server := servertest.NewTools("a")
	server.AddTool(&mcp.Tool{Name: "odd", InputSchema: json.RawMessage(`{"type":"object","properties":{"n":{"type":"strng"}}}`)}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}, IsError: true}, nil
	})
	config := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"one": {"url": %q}}}`, servertest.Serve(t, server)))
	const why = `the tool is left out: inputSchema.properties.n.type: "strng" is no type of JSON Schema`
	var out, log strings.Builder
	require.Equal(t, cli.ExitOK, run([]string{"tools", "--config", config}, nil, &out, &log))
	require.Contains(t, out.String(), "one__a")
	require.NotContains(t, out.String(), "odd")
	require.Equal(t, "mcpactor: one: odd: "+why+"\n", log.String())

	out.Reset()
	require.Equal(t, cli.ExitOK, run([]string{"tools", "--config", config, "--json"}, nil, &out, &log))
	require.Contains(t, out.String(), `"missing":[],"leftOut":[{"server":"one","tool":"odd","error":`)

	for name, want := range map[string]string{"odd": "one: odd: " + why, "one__odd": "one: odd: " + why, "one__b": `did you mean "one__a"?`} {
		log.Reset()
		require.NotEqual(t, cli.ExitOK, run([]string{"tools", "--config", config, name}, nil, &out, &log))
		require.Contains(t, log.String(), want)
	}

	var found strings.Builder
	require.Equal(t, cli.ExitOK, run([]string{"doctor", "--config", config}, nil, &found, &log))
	require.Contains(t, found.String(), "one: odd: "+why)

	out.Reset()
	log.Reset()
	require.Equal(t, exitToolError, run([]string{"call", "--config", config, "one", "odd", "n=5"}, nil, &out, &log))
	require.Equal(t, `{"n":"5"}`+"\n", out.String())
	require.Equal(t, "mcpactor: odd: only the types of the arguments were checked: the schema of the tool cannot be used\n", log.String(), "there is such a tool")
}
