package exec

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/commands"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/toolset"
)

func TestMain(m *testing.M) {
	if os.Getenv("EXEC_TEST_SERVER") != "" { // the test binary is a stdio server
		servertest.NewTools("a").Run(context.Background(), &mcp.StdioTransport{})
		return
	}
	servertest.RunTests(m)
}

// run runs exec or another command as a program does, and returns the exit status.
func run(args []string, in io.Reader, out, log io.Writer) (status int) {
	program := &cli.Program{Name: "mcpactor", In: in, Out: out, Err: log}
	return program.Run(&struct {
		Exec  Exec           `cmd:""`
		Tools commands.Tools `cmd:""`
		Pin   commands.Pin   `cmd:""`
	}{}, args)
}

// inMemory runs a scenario in fake time, with servers in memory.
func inMemory(t *testing.T, servers map[string]*mcp.Server, scenario func(t *testing.T, i *inputs.Instance, tools *toolsets)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		file := &config.File{}
		for _, name := range slices.Sorted(maps.Keys(servers)) {
			file.Supervisor.Servers = append(file.Supervisor.Servers, mcpbridge.Server{Name: name, InMemory: servers[name]})
			file.Tools = append(file.Tools, toolset.Filter{Name: name})
		}
		i, err := inputs.Start("", file, nil, io.Discard, "error")
		require.NoError(t, err)
		defer func() {
			require.NoError(t, i.Stop(time.Minute))
			time.Sleep(3 * time.Second) // synctest: the throttle of Proto.Actor's dead letters ends
		}()
		subscribed := i.Running.System().EventStream.Length()
		tools := newToolsets(i.Toolset, i.Tools)
		defer func() {
			tools.closeAll()
			require.Equal(t, subscribed, i.Running.System().EventStream.Length(), "all toolsets are closed")
		}()
		scenario(t, i, tools)
	})
}

// responsesTo runs requests, and returns all lines of output, decoded.
func responsesTo(t *testing.T, i *inputs.Instance, tools *toolsets, parallel int, requests string) []map[string]any {
	t.Helper()
	var out strings.Builder
	r := newRunner(i.Running.Client(), &out, parallel)
	r.toolsets = tools
	r.run(t.Context(), strings.NewReader(requests))
	return decoded(t, out.String())
}

func decoded(t *testing.T, output string) (lines []map[string]any) {
	t.Helper()
	for line := range strings.Lines(output) {
		var decoded map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &decoded), line)
		lines = append(lines, decoded)
	}
	return lines
}

// sequence returns the id of each response and the name of each event, in order.
func sequence(lines []map[string]any) (names []string) {
	for _, line := range lines {
		if event, ok := line["event"].(string); ok {
			names = append(names, event)
			continue
		}
		names = append(names, line["id"].(string))
	}
	return names
}

// text returns the text in the result of a response, or its error.
func text(response map[string]any) string {
	if failure, ok := response["error"].(string); ok {
		return failure
	}
	content := response["result"].(map[string]any)["content"].([]any)
	return content[0].(map[string]any)["text"].(string)
}
