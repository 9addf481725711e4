package serve

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
)

// recordVar makes the test binary a stdio server, whose tools append their names to the file that it names.
const recordVar = "MCPACTOR_SERVE_TEST_RECORD"

func TestMain(m *testing.M) {
	servertest.RunIfScripted()
	servertest.WithoutLogins()
	if os.Getenv(programVar) != "" && os.Getenv(recordVar) == "" {
		runProgram()
	}
	if record := os.Getenv(recordVar); record != "" {
		runServer(record)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// startsVar names the file to which each of these servers appends a line when it starts.
const startsVar = "MCPACTOR_SERVE_TEST_STARTS"

// appendLine appends a line to a file.
func appendLine(path, line string) error {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = fmt.Fprintln(file, line)
	return err
}

func runServer(record string) {
	if starts := os.Getenv(startsVar); starts != "" {
		if err := appendLine(starts, strconv.Itoa(os.Getpid())); err != nil {
			panic(err)
		}
	}
	s := mcp.NewServer(&mcp.Implementation{Name: "tools", Version: "1"}, nil)
	for _, name := range []string{"read", "write", "drop"} {
		mcp.AddTool(s, &mcp.Tool{Name: name, Annotations: &mcp.ToolAnnotations{ReadOnlyHint: name == "read"}}, func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil, appendLine(record, name)
		})
	}
	s.Run(context.Background(), &mcp.StdioTransport{})
}

// served runs the command with a client, which leaves at the end of the test.
func served(t *testing.T, args ...string) *mcp.ClientSession { return servedTo(t, nil, args...) }

// servedTo runs the command with a client that has options.
func servedTo(t *testing.T, options *mcp.ClientOptions, args ...string) *mcp.ClientSession {
	in, toServe := io.Pipe()
	fromServe, out := io.Pipe()
	status := make(chan int, 1)
	go func() {
		var program struct {
			Serve Serve `cmd:""`
		}
		p := &cli.Program{Name: "mcpactor", In: in, Out: out, Err: t.Output()}
		status <- p.Run(&program, append([]string{"serve", "--no-cache"}, args...))
		out.Close()
	}()
	client := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, options)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: fromServe, Writer: toServe}, nil)
	require.NoError(t, err)
	t.Cleanup(func() {
		session.Close()
		toServe.Close()
		require.Equal(t, cli.ExitOK, <-status)
	})
	return session
}

// toolsOf returns the names of the tools that a client sees.
func toolsOf(t *testing.T, session *mcp.ClientSession) (names []string) {
	for tool, err := range session.Tools(t.Context(), nil) {
		require.NoError(t, err)
		names = append(names, tool.Name)
	}
	return names
}

// A client sees the tools that the file leaves to it: those that it hides cannot be called either, by any name. A server that is
// disabled or broken hides no other.
func TestFileSaysWhatClientsSee(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	file, record := filepath.Join(folder, "mcp.json"), filepath.Join(folder, "called")
	entry := func(filter string) string {
		return fmt.Sprintf(`{"command": %q, "env": {%q: %q, "GORACE": "atexit_sleep_ms=0"}%s}`, self, recordVar, record, filter)
	}
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `{"mcpServers": {
		"all": %s,
		"allowed": %s,
		"denied": %s,
		"excluded": %s,
		"off": %s,
		"broken": {"command": "no-such-program"}
	}}`, entry(""), entry(`, "allow": ["r*"]`), entry(`, "deny": ["w*", "drop"]`), entry(`, "excludeTools": ["write"]`), entry(`, "disabled": true`)), 0o600))

	session := served(t, "--config", file)
	names := toolsOf(t, session)
	require.ElementsMatch(t, []string{"all__read", "all__write", "all__drop", "allowed__read", "denied__read", "excluded__read", "excluded__drop"}, names)

	for _, hidden := range []string{"allowed__write", "denied__write", "denied__drop", "excluded__write", "off__read", "write", "drop"} {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: hidden})
		require.NoError(t, err)
		require.True(t, result.IsError, hidden)
		require.Contains(t, result.Content[0].(*mcp.TextContent).Text, "is not known", hidden)
	}
	require.NoFileExists(t, record, "nothing has run")

	want := ""
	for _, shown := range names {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: shown})
		require.NoError(t, err)
		require.False(t, result.IsError, shown)
		_, tool, _ := strings.Cut(shown, "__")
		want += tool + "\n"
	}
	called, err := os.ReadFile(record)
	require.NoError(t, err)
	require.Equal(t, want, string(called))
}

// A tool has to pass the filters of its server, those of the command line, and those of the file for the client.
func TestFlagsAndNameOfTheClientSayWhatItSees(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	file := filepath.Join(folder, "mcp.json")
	entry := fmt.Sprintf(`{"command": %q, "env": {%q: %q, "GORACE": "atexit_sleep_ms=0"}, "deny": ["read_secret"]}`, self, recordVar, filepath.Join(folder, "called"))
	for _, test := range []struct {
		clients string
		flags   []string
		want    []string
	}{
		{`{"other": {"deny": ["*"]}}`, nil, []string{"a__read", "a__write", "a__drop", "b__read", "b__write", "b__drop"}},
		{`{"test*": {"deny": ["a/w*", "drop"]}}`, nil, []string{"a__read", "b__read", "b__write"}},
		{`{"*": {"readOnly": true}}`, []string{"--deny", "b/*"}, []string{"a__read"}},
		{`{}`, []string{"--read-only"}, []string{"a__read", "b__read"}},
		{`{"tester": {"deny": ["a/read"]}}`, []string{"--allow", "a/read,a/write", "--allow", "b/drop", "--deny", "drop"}, []string{"a__write"}},
	} {
		require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `{"mcpServers": {"a": %s, "b": %s}, "clients": %s}`, entry, entry, test.clients), 0o600))
		session := served(t, append(test.flags, "--config", file)...)
		require.ElementsMatch(t, test.want, toolsOf(t, session), test.clients)
	}

	t.Setenv(recordVar, filepath.Join(folder, "called"))
	session := served(t, "--deny", "*/w*", "--", self)
	require.Equal(t, []string{"drop", "read"}, toolsOf(t, session))
	for _, hidden := range []string{"write", "write_unlisted"} {
		_, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: hidden})
		require.ErrorContains(t, err, "unknown tool")
	}
}

// A server whose entry has an error hides no other, and the client is told.
func TestClientIsToldOfServersThatAreLeftOut(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	file := filepath.Join(folder, "mcp.json")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "{\"mcpServers\": {\"one\": {\"command\": %q, \"env\": {%q: %q, \"GORACE\": \"atexit_sleep_ms=0\"}},\n\"bad\": {\"command\": 7}}}",
		self, recordVar, filepath.Join(folder, "called")), 0o600))
	told := make(chan *mcp.LoggingMessageParams, 10)
	session := servedTo(t, &mcp.ClientOptions{LoggingMessageHandler: func(_ context.Context, req *mcp.LoggingMessageRequest) { told <- req.Params }}, "--config", file)
	require.ElementsMatch(t, []string{"one__read", "one__write", "one__drop"}, toolsOf(t, session))
	message := <-told
	require.EqualValues(t, "error", message.Level)
	require.Regexp(t, `:2: mcpServers.bad.command: is a number, want a string; the server is left out$`, message.Data)
}

// What a client has minted is released when its input ends.
func TestHandlesInTheFileEndWithTheClient(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	file, record := filepath.Join(folder, "mcp.json"), filepath.Join(folder, "called")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `{"mcpServers": {"s": {"command": %q, "env": {%q: %q, "GORACE": "atexit_sleep_ms=0"},
		"handles": [{"mint": "write", "pattern": "(write)", "release": "drop", "argument": "id"}]}}}`, self, recordVar, record), 0o600))
	t.Run("client", func(t *testing.T) {
		result, err := served(t, "--config", file).CallTool(t.Context(), &mcp.CallToolParams{Name: "s__write"})
		require.NoError(t, err)
		require.False(t, result.IsError)
	})
	called, err := os.ReadFile(record)
	require.NoError(t, err)
	require.Equal(t, "write\ndrop\n", string(called))
}
