package commands

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
)

func TestAToolIsDescribedInWords(t *testing.T) {
	srv := servertest.NewTools("plain")
	no := false
	servertest.AddTool(srv, &mcp.Tool{
		Name: "search", Title: "Search", Description: "Finds things.\nFast \x1b[31mred\n",
		Annotations: &mcp.ToolAnnotations{IdempotentHint: true, DestructiveHint: &no},
		InputSchema: map[string]any{
			"type": "object", "required": []string{"text"},
			"properties": map[string]any{
				"text":  map[string]any{"type": "string", "description": "what to find"},
				"limit": map[string]any{"type": "integer", "minimum": 1, "maximum": 50, "default": 10},
				"order": map[string]any{"enum": []string{"up", "down"}},
				"tags":  map[string]any{"type": "array", "items": map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": []string{"string", "null"}}}}},
				"deep":  map[string]any{"anyOf": []any{map[string]any{"type": "boolean"}, map[string]any{"type": "number"}}},
			},
		},
	})
	config := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"one": {"url": %q}, "other": {"command": "/no/such"}}}`, servertest.Serve(t, srv)))
	var out, log strings.Builder
	require.Equal(t, cli.ExitOK, run([]string{"tools", "--config", config, "one__search"}, nil, &out, &log), log.String())
	require.Equal(t, `one__search  Search
  Finds things.
  Fast [31mred
  According to its server: it only adds; to repeat a call changes nothing more.
  Arguments:
    text: text, required. what to find
    deep: true or false or number
    limit: whole number from 1 to 50, default 10
    order: one of "up", "down"
    tags: list of object
      name: text or null
`, out.String())
	require.Empty(t, log.String(), "no other server is started")

	out.Reset()
	require.Equal(t, cli.ExitOK, run([]string{"tools", "--config", config, "one"}, nil, &out, &log), log.String())
	require.Contains(t, out.String(), "one__plain")
	require.Contains(t, out.String(), "one__search")

	require.Equal(t, cli.ExitUsage, run([]string{"tools", "--config", config, "one__serach"}, nil, &out, &log))
	require.Contains(t, log.String(), `did you mean "one__search"?`)
	log.Reset()
	require.Equal(t, cli.ExitFailed, run([]string{"tools", "--config", config, "plain"}, nil, &out, &log), "a tool of that name may be on the server that fails")
	require.Contains(t, log.String(), "other: ")
}

func TestSchemaThatNobodyCanReadIsShownAsItIs(t *testing.T) {
	var out strings.Builder
	require.NoError(t, words(&out, cli.Screen{}, []toolEntry{{Name: "a", InputSchema: map[string]any{"properties": "no\x1b"}}, {Name: "b", InputSchema: true}}))
	require.Equal(t, "a\n  Arguments: {\"properties\":\"no\\u001b\"}\n\nb\n  Arguments: true\n", out.String())
}

func TestAlternativesThatAreNullAreLeftOut(t *testing.T) {
	var out strings.Builder
	schema := map[string]any{"properties": map[string]any{"x": map[string]any{"anyOf": []any{nil, map[string]any{"type": "string"}}}}}
	require.NoError(t, words(&out, cli.Screen{}, []toolEntry{{Name: "a", InputSchema: schema}}))
	require.Equal(t, "a\n  Arguments:\n    x: text\n", out.String())
}

// What takes more than a second is named on a terminal, and the line is gone in the end.
func TestWhatTakesLongIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		sayWaiting(&out, 80, func() string { return "waiting for a" })()
		require.Equal(t, "\r\x1b[K", out.String())
		out.Reset()
		done := sayWaiting(&out, 80, func() string { return "waiting for a" })
		time.Sleep(2500 * time.Millisecond)
		done()
		require.Equal(t, "\r\x1b[Kwaiting for a (1 s)\r\x1b[Kwaiting for a (2 s)\r\x1b[K", out.String())
	})
}
