package commands

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
	"github.com/mcpactor/mcpactor/internal/toolsize"
)

// sized adds a tool that takes so many bytes of a context, and says whether it only reads.
func sized(server *mcp.Server, name string, bytes int, reads bool) {
	schema := json.RawMessage(`{"type":"object"}`)
	server.AddTool(&mcp.Tool{
		Name: name, Title: strings.Repeat("T", 1000), Description: strings.Repeat("x", bytes-toolsize.Of(name, "x", schema)+1), InputSchema: schema,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: reads},
	}, nil)
}

// sizedFile returns a file with servers of 20 tools and 1, and with a tool that a filter hides.
func sizedFile(t *testing.T) (path string) {
	few, many := servertest.NewTools(), servertest.NewTools()
	sized(few, "only", 2000, false)
	sized(few, "hidden", 1200, true)
	for i := range 20 {
		sized(many, fmt.Sprintf("t%02d", i), 400, i < 5)
	}
	return servertest.File(t, fmt.Sprintf(`{"mcpServers": {"few": {"url": %q, "deny": ["hid*"]}, "many": {"url": %q}}}`, servertest.Serve(t, few), servertest.Serve(t, many)))
}

func TestSizesOfServersAndToolsAndWhatIsSaved(t *testing.T) {
	var out, log strings.Builder
	require.Equal(t, cli.ExitOK, run([]string{"tools", "--config", sizedFile(t), "--size"}, nil, &out, &log), log.String())
	require.Empty(t, log.String())
	text := out.String()
	require.Contains(t, text, `TOKENS  BYTES   SHARE  TOOLS  SERVER
  2000   8000   80.0%     20  many
   500   2000   20.0%      1  few
  2500  10000  100.0%     21  all 2 servers

TOKENS  BYTES  SHARE  TOOL
   500   2000  20.0%  few__only
   100    400   4.0%  many__t00
`)
	require.Contains(t, text, "many__t08\n\n", "the ten largest")
	require.NotContains(t, text, "many__t09")
	lines := squeezed(text)
	require.Regexp(t, `^2\d{3} 9[2-8]\d{2} 9\d\.\d% 21 mcpactor serve --find 20, until the first tool is found$`, lines[len(lines)-5])
	require.Equal(t, []string{
		"2000 8000 80.0% 16 mcpactor serve --read-only",
		"300 1200 10.7% 1 the filters in the file, already", "",
		"Counted is what a model gets of a tool: its name, description and input schema, as JSON. Tokens are bytes / 4.",
	}, lines[len(lines)-4:])
}

func TestSizesOfOneServerAreThoseOfAllItsTools(t *testing.T) {
	config := sizedFile(t)
	var out, log strings.Builder
	require.Equal(t, cli.ExitOK, run([]string{"tools", "--config", config, "--size", "many"}, nil, &out, &log), log.String())
	require.Equal(t, 20, strings.Count(out.String(), "many__t"))
	require.NotContains(t, out.String(), "few")
	require.NotContains(t, out.String(), "--find", "20 tools are listed")

	out.Reset()
	require.Equal(t, cli.ExitUsage, run([]string{"tools", "--config", config, "--size", "few__hidden"}, nil, &out, &log), "it is no tool for a client")
}

func TestSizesAsJSONHaveAllTools(t *testing.T) {
	var out, log strings.Builder
	require.Equal(t, cli.ExitOK, run([]string{"tools", "--config", sizedFile(t), "--size", "--json"}, nil, &out, &log), log.String())
	var got sizes
	require.NoError(t, json.Unmarshal([]byte(out.String()), &got))
	require.Equal(t, amount{21, 10_000, 2500}, got.Total)
	require.Equal(t, []serverSize{{"many", amount{20, 8000, 2000}}, {"few", amount{1, 2000, 500}}}, got.Servers)
	require.Len(t, got.Tools, 21)
	require.Equal(t, toolSize{"few__only", "few", "only", 2000, 500}, got.Tools[0])
	require.Equal(t, 21, got.Saved.Find.Tools)
	require.Equal(t, amount{16, 8000, 2000}, got.Saved.ReadOnly)
	require.Equal(t, amount{1, 1200, 300}, got.Saved.Filters)
	require.Contains(t, out.String(), `"servers":[{"server":"many","tools":20,"bytes":8000,"tokens":2000},`)
	require.Contains(t, out.String(), `"missing":[]`)
}
