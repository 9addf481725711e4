package exec

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
	"github.com/mcpactor/mcpactor/resume"
)

func TestInvalidUsageExitsWithTwo(t *testing.T) {
	empty := servertest.File(t, `{"mcpServers": {"a": {}}}`)
	for want, args := range map[string][]string{
		"no such file": {"exec", "--config", "/no/such/file"},
		"mcpServers.a.command: is empty, and so is url": {"exec", "--config", empty},
		"--parallel: 0 is less than 1":                  {"exec", "--config", empty, "--parallel", "0"},
		"--timeout: 0s is not greater than 0":           {"tools", "--config", empty, "--timeout", "0s"},
		"--scope: has a control character":              {"tools", "--config", empty, "--scope", "a\n"},
		"the port must be a number":                     {"exec", "--config", servertest.File(t, `{"mcpServers": {"a": {"url": "http://a.invalid"}}}`), "--listen", "127.0.0.1:none"},
		`--log-level must be one of "debug","info"`:     {"exec", "--config", empty, "--log-level", "loud"},
	} {
		var stdout, stderr bytes.Buffer
		require.Equal(t, cli.ExitUsage, run(args, strings.NewReader(""), &stdout, &stderr), want)
		require.Contains(t, stderr.String(), "mcpactor: ")
		require.Contains(t, stderr.String(), want)
		require.Empty(t, stdout.String(), want)
	}
}

func TestToolsPrintsTheSameJSONAsExec(t *testing.T) {
	config := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"one": {"url": %q}}}`, servertest.Serve(t, servertest.NewTools("a", "b"))))
	var out, response, log strings.Builder
	require.Equal(t, cli.ExitOK, run([]string{"tools", "--config", config, "--json"}, nil, &out, &log), log.String())
	require.Equal(t, cli.ExitOK, run([]string{"exec", "--config", config}, strings.NewReader(`{"id":"1","op":"tools"}`), &response, &log), log.String())
	var a struct{ Result json.RawMessage }
	require.NoError(t, json.Unmarshal([]byte(response.String()), &a))
	require.Equal(t, string(a.Result)+"\n", out.String())
}

// exec opens and closes the store; tools does not use it.
func TestStoreIsOpenedAndClosed(t *testing.T) {
	dir := t.TempDir()
	url := servertest.Serve(t, servertest.NewTools("a"))
	request := `{"id":"1","server":"s","tool":"a"}`
	do := func(command, settings string) (status int, text string) {
		config := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"s": {"url": %q, "protocolVersion": "2025-11-25"}}, "supervisor": %s}`, url, settings))
		var out, log strings.Builder
		status = run([]string{command, "--config", config}, strings.NewReader(request), &out, &log)
		return status, out.String() + log.String()
	}
	path := filepath.Join(dir, "sessions")
	settings := fmt.Sprintf(`{"store": %q, "leaveOpen": true}`, path)
	for _, generation := range []string{`"generation":1`, `"generation":1`} {
		status, text := do("exec", settings)
		require.Equal(t, cli.ExitOK, status, text)
		require.Contains(t, text, generation)
	}
	store, err := resume.Open(path, resume.Config{})
	require.NoError(t, err, "exec has closed the store")
	defer store.Close()
	status, text := do("tools", settings)
	require.Equal(t, cli.ExitOK, status, text)

	for settings, want := range map[string]string{
		settings: "supervisor.store: resume: open " + path + ": the file is in use",
		fmt.Sprintf(`{"store": %q}`, dir+"/no/such"):              "supervisor.store: resume: open",
		`{"leaveOpen": true}`:                                     "leaveOpen: needs a store",
		fmt.Sprintf(`{"store": %q, "maxSessions": -2}`, path+"2"): "maxSessions: -2 is negative",
	} {
		status, text = do("exec", settings)
		require.Equal(t, cli.ExitUsage, status, text)
		require.Contains(t, text, want)
	}
	other, err := resume.Open(path+"2", resume.Config{})
	require.NoError(t, err, "the store is closed if the supervisor does not start")
	other.Close()
}

func TestServerWithAnErrorIsLeftOut(t *testing.T) {
	config := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"one": {"url": %q}, "bad": {"command": "x", "env": {"A": "${NOT_SET_ANYWHERE}"}}}}`, servertest.Serve(t, servertest.NewTools("a"))))
	var out, log strings.Builder
	request := `{"id":"1","server":"one","tool":"a"}`
	require.Equal(t, cli.ExitOK, run([]string{"exec", "--config", config}, strings.NewReader(request), &out, &log))
	require.Contains(t, log.String(), "NOT_SET_ANYWHERE is not set")
}

// The lock file beside the configuration holds for calls by each name, and for prompts.
func TestWhatIsNotAcceptedIsRefusedUnsent(t *testing.T) {
	server := servertest.NewTools("a", "b")
	prompt := func(description string) {
		server.AddPrompt(&mcp.Prompt{Name: "p", Description: description}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{}, nil
		})
	}
	prompt("one")
	config := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"one": {"url": %q}}}`, servertest.Serve(t, server)))
	var out, log strings.Builder
	require.Equal(t, cli.ExitOK, run([]string{"pin", "--config", config}, nil, &out, &log), log.String())
	servertest.AddTool(server, &mcp.Tool{Name: "a", Title: "Another"})
	requests := strings.Join([]string{
		`{"id":1,"server":"one","tool":"a"}`, `{"id":2,"name":"one__a"}`, `{"id":3,"server":"one","tool":"b"}`, `{"id":4,"name":"one__b"}`,
		`{"id":5,"server":"one","op":"get_prompt","prompt":"p"}`, `{"id":6,"server":"one","tool":"c"}`, `{"id":7,"op":"tools"}`,
	}, "\n")
	do := func() map[float64]map[string]any {
		var out strings.Builder
		require.Equal(t, cli.ExitFailed, run([]string{"exec", "--config", config}, strings.NewReader(requests), &out, &log), log.String())
		byID := map[float64]map[string]any{}
		for _, response := range decoded(t, out.String()) {
			byID[response["id"].(float64)] = response
		}
		return byID
	}
	got := do()
	for id, code := range map[float64]any{1: "refused", 2: "refused", 3: nil, 4: nil, 5: nil, 6: "invalid"} {
		require.Equal(t, code, got[id]["code"], "%v", got[id])
		if code == "refused" {
			require.Contains(t, got[id]["error"], `"mcpactor pin" shows a person`)
		}
	}
	require.Contains(t, fmt.Sprint(got[7]["result"]), "one__b")
	require.NotContains(t, fmt.Sprint(got[7]["result"]), "name:one__a ")
	prompt("two")
	require.Equal(t, "refused", do()[5]["code"])
}
