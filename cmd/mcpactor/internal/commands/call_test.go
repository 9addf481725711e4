package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
	"github.com/mcpactor/mcpactor/tests/faults"
)

func TestCallPrintsTheResultAndItsStatusSaysWhatHappened(t *testing.T) {
	server := servertest.NewTools("plain")
	mcp.AddTool(server, &mcp.Tool{Name: "given"}, func(_ context.Context, req *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "\x1b[2J\u202e\u2066" + string(req.Params.Arguments)}}}, nil, nil
	})
	type sum struct {
		A    int     `json:"a"`
		B    float64 `json:"b,omitempty"`
		Text string  `json:"text,omitempty"`
		Many []int   `json:"many,omitempty"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "typed"}, func(_ context.Context, req *mcp.CallToolRequest, _ sum) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(req.Params.Arguments)}}}, nil, nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "wrong"}, func(context.Context, *mcp.CallToolRequest, map[string]any) (*mcp.CallToolResult, any, error) {
		return nil, nil, fmt.Errorf("no luck")
	})
	e, err := faults.Serve(func() http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil)
	})
	require.NoError(t, err)
	defer e.Close()
	config := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"one": {"url": %q}, "down": {"url": "http://127.0.0.1:1"}}}`, e.URL()))
	call := func(args ...string) (status int, stdout, stderr string) {
		var out, log strings.Builder
		status = run(append([]string{"call", "--config", config}, args...), nil, &out, &log)
		return status, out.String(), log.String()
	}
	status, out, _ := call("one", "given", "a=1", "b:=[1]", "c=x=y")
	require.Equal(t, cli.ExitOK, status)
	require.True(t, strings.HasPrefix(out, "[2J{"), out)
	_, out, _ = strings.Cut(out, "[2J")
	require.JSONEq(t, `{"a":"1","b":[1],"c":"x=y"}`, out)
	status, out, _ = call("one", "typed", "a=12345678901234567", "b=2.5", "text=1", "many=[1]")
	require.Equal(t, cli.ExitOK, status, out)
	require.Equal(t, `{"a":12345678901234567,"b":2.5,"many":[1],"text":"1"}`+"\n", out)
	status, out, _ = call("one", "typed", `{"a": "1"}`)
	require.Equal(t, exitToolError, status, "JSON is sent as it is: %s", out)
	status, out, _ = call("one", "plain", "--json", `{"a":1}`)
	require.Equal(t, cli.ExitOK, status)
	require.True(t, json.Valid([]byte(out)))
	status, out, _ = call("one", "wrong")
	require.Equal(t, exitToolError, status)
	require.Contains(t, out, "no luck")
	status, _, log := call("down", "plain")
	require.Equal(t, cli.ExitFailed, status)
	require.Contains(t, log, "connection refused")
	status, _, log = call("onne", "plain")
	require.Equal(t, cli.ExitUsage, status)
	require.Contains(t, log, `did you mean "one"?`)
	for tool, want := range map[string]string{
		"plian":      "one has no tool \"plian\": did you mean \"plain\"?\n",
		"one__plian": "one has no tool \"one__plian\": did you mean \"one__plain\"?\n",
		"nonsense":   "one has no tool \"nonsense\": mcpactor tools lists those that there are\n",
	} {
		status, out, log = call("one", tool)
		require.Equal(t, cli.ExitFailed, status)
		require.Equal(t, "mcpactor: "+want, log)
		require.Empty(t, out)
	}
	_, out, _ = call("one", "nonsense", "--json")
	require.JSONEq(t, `{"error": "one has no tool \"nonsense\": mcpactor tools lists those that there are", "code": "invalid", "mayHaveRun": false}`, out)
	status, out, log = call("down", "plain", "--json")
	require.Equal(t, cli.ExitFailed, status)
	var failed struct{ Error, Code string }
	require.NoError(t, json.Unmarshal([]byte(out), &failed))
	require.Equal(t, "unavailable", failed.Code)
	require.Equal(t, log, "mcpactor: "+failed.Error+"\n")
	status, out, _ = call("one", "one__plain")
	require.Equal(t, cli.ExitOK, status, "the command tools calls it so")
	require.Equal(t, "plain\n", out)
	status, _, _ = call("one", "given", "b:={")
	require.Equal(t, cli.ExitUsage, status)
	e.Inject("tools/call", faults.Cut())
	status, _, log = call("one", "plain")
	require.Equal(t, exitMayHaveRun, status)
	require.Contains(t, log, "one: lost: ")
	require.Contains(t, log, "; the call may have run")
	e.Inject("tools/call", faults.Cut())
	status, out, _ = call("one", "plain", "--json")
	require.Equal(t, exitMayHaveRun, status)
	require.Contains(t, out, `"mayHaveRun":true`)
	status, _, log = call("one", "plain", "--timeout", "0")
	require.Equal(t, cli.ExitUsage, status)
	require.Contains(t, log, "--timeout: 0s is not greater than 0")
}

// An argument is what the schema of the tool makes of it, or it is refused with its name.
func TestArgumentIsWhatTheWholeSchemaSays(t *testing.T) {
	server := servertest.NewTools("plain")
	server.AddTool(&mcp.Tool{Name: "echo", InputSchema: json.RawMessage(`{
		"type": "object", "required": ["never"], "additionalProperties": {"type": "integer"}, "patternProperties": {"^t_": {"type": "string"}},
		"properties": {
			"s": {"type": "string"}, "n": {"type": ["integer", "null"]}, "u": {"anyOf": [{"type": "integer"}, {"type": "null"}]}, "b": {"type": "boolean"},
			"one": {"oneOf": [{"type": "string", "enum": ["a"]}, {"type": "array", "items": {"type": "integer"}}]},
			"all": {"allOf": [{"$ref": "#/$defs/N"}, {"minimum": 5}]}, "o": {"$ref": "#/$defs/O"}, "e": {"enum": ["1", 2, null]}, "c": {"const": true},
			"any": {}, "both": {"type": ["string", "integer"]}, "look": {"type": "string", "pattern": "^(?!x)"}, "lookn": {"type": "integer", "pattern": "(?<=a)"}, "pattern": {"type": "integer"}
		},
		"anyOf": [{"properties": {"branch": {"type": "number"}}}],
		"$defs": {"O": {"type": "object", "properties": {"k": {"$ref": "#/$defs/N"}}}, "N": {"type": "number"}}
	}`)}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: req.Params.Arguments, Content: []mcp.Content{}}, nil
	})
	config := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"one": {"url": %q, "deny": ["*"]}}}`, servertest.Serve(t, server)))
	for argument, want := range map[string]string{
		"s=5": `{"s":"5"}`, "s=null": `{"s":"null"}`, "n=5": `{"n":5}`, "n=null": `{"n":null}`, "u=5": `{"u":5}`, "u=null": `{"u":null}`, "b=true": `{"b":true}`,
		"one=a": `{"one":"a"}`, "one=[1]": `{"one":[1]}`, "all=7": `{"all":7}`, `o={"k":1}`: `{"o":{"k":1}}`, "e=1": `{"e":"1"}`, "e=2": `{"e":2}`, "e=null": `{"e":null}`,
		"c=true": `{"c":true}`, "any=5": `{"any":"5"}`, "both=5": `{"both":"5"}`, "look=x": `{"look":"x"}`, "lookn=1": `{"lookn":1}`, "pattern=1": `{"pattern":1}`, "branch=1.5": `{"branch":1.5}`, "t_x=1": `{"t_x":"1"}`,
		"more=3": `{"more":3}`, `n:="x"`: `{"n":"x"}`,
	} {
		var out, log strings.Builder
		require.Equal(t, cli.ExitOK, run([]string{"call", "--config", config, "one", "echo", argument}, nil, &out, &log), log.String())
		require.JSONEq(t, want, out.String(), argument)
	}
	for argument, want := range map[string]string{
		"n=abc": `n: "abc" is not what the tool wants: whole number or null. To send it unchecked, write n:=JSON`, "u=1.5": `u: "1.5" is not what the tool wants: whole number or null`, "u=": `u: "" is not what the tool wants: whole number or null`,
		"b=yes": `b: "yes" is not what the tool wants: true or false`, "one=b": `one: "b" is not what the tool wants: one of "a" or list of whole number`, "all=3": `all: "3" is not what the tool wants: what its schema says`,
		`o={"k":"x"}`: "o: ", "e=3": `e: "3" is not what the tool wants: one of "1", 2, null`, "c=1": `c: "1" is not what the tool wants: true`, "more=x": `echo has no argument "more": it has all, any, b`,
	} {
		var out, log strings.Builder
		require.Equal(t, cli.ExitUsage, run([]string{"call", "--config", config, "one", "one__echo", argument}, nil, &out, &log), argument)
		require.Contains(t, log.String(), want)
		require.Empty(t, out.String())
	}
}

// A schema that cannot be used still has the types of its arguments. What is sent twice is refused, and what a server sends is printed
// as it came.
func TestArgumentIsOfItsTypeWhereTheSchemaCannotBeUsed(t *testing.T) {
	server := servertest.NewTools("a")
	server.AddTool(&mcp.Tool{Name: "loop", InputSchema: json.RawMessage(`{"type":"object","properties":{
		"n":{"type":"integer"},"s":{"type":["string","null"]},"odd":{"type":"strng"},"x":{"$ref":"#/$defs/X"}},"$defs":{"X":{"$ref":"#/$defs/X"}}}`)}, func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: req.Params.Arguments, Content: []mcp.Content{}}, nil
	})
	server.AddTool(&mcp.Tool{Name: "raw", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: json.RawMessage(`{"z":1.0,"a":2}`), Content: []mcp.Content{}}, nil
	})
	config := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"one": {"url": %q}}}`, servertest.Serve(t, server)))
	var out, log strings.Builder
	require.Equal(t, cli.ExitOK, run([]string{"call", "--config", config, "one", "loop", "n=5", "s=5", "odd=1", "x=1"}, nil, &out, &log), log.String())
	require.JSONEq(t, `{"n":5,"s":"5","odd":"1","x":"1"}`, out.String())
	require.Equal(t, "mcpactor: loop: only the types of the arguments were checked: the schema of the tool cannot be used\n", log.String())
	out.Reset()
	require.Equal(t, cli.ExitOK, run([]string{"call", "--config", config, "one", "raw"}, nil, &out, &log))
	require.Equal(t, `{"z":1.0,"a":2}`+"\n", out.String())
	for _, twice := range [][]string{{"n=1", "n=2"}, {"n:=1", "n=2"}} {
		log.Reset()
		require.Equal(t, cli.ExitUsage, run(append([]string{"call", "--config", config, "one", "loop"}, twice...), nil, &out, &log))
		require.Contains(t, log.String(), "n: is given twice")
	}
}

func TestDoctorHasALineForEachServer(t *testing.T) {
	config := servertest.File(t, fmt.Sprintf(
		`{"mcpServers": {"bad": {"command": "/no/such"}, "down": {"url": "http://127.0.0.1:1"}, "mute": {"command": "sleep", "args": ["60"]}, "one": {"url": %q}}}`, servertest.Serve(t, servertest.NewTools("a", "b"))))
	var out, log strings.Builder
	require.Equal(t, cli.ExitFailed, run([]string{"doctor", "--config", config, "--timeout", "6s"}, nil, &out, &log))
	lines := squeezed(out.String())
	require.Len(t, lines, 5)
	require.Equal(t, "SERVER STATUS TOOLS TIME ABOUT", lines[0])
	require.Regexp(t, `^bad fails .*unavailable: .*no/such.*; check command`, lines[1])
	require.Regexp(t, `^down fails .*connection refused; check that it runs, and its URL$`, lines[2])
	require.Regexp(t, `^mute fails [56](\.\d+)?s unavailable: timed out while connecting: .*; run its command by hand to see what it says, or give it more --timeout$`, lines[3])
	require.Regexp(t, `^one works 2 \S+ test 1, MCP 20\d\d-\d\d-\d\d$`, lines[4])
	require.Equal(t, "mcpactor: "+inputs.PinHint(config)+"\n", log.String())
}

func TestDoctorNamesServersWhoseInputsAreMissing(t *testing.T) {
	config := servertest.File(t, fmt.Sprintf(`{"servers": {"one": {"url": %q}, "lacks": {"url": "http://127.0.0.1:1", "headers": {"K": "${input:key}"}}}}`, servertest.Serve(t, servertest.NewTools())))
	var out, log strings.Builder
	require.Equal(t, cli.ExitFailed, run([]string{"doctor", "--config", config}, nil, &out, &log))
	require.Contains(t, out.String(), `servers.lacks.headers.K: needs the input "key": give --input key=VALUE; the server is left out`)
}

// An entry with an error costs that server, in each command.
func TestServerWithAnErrorIsLeftOutAndNamed(t *testing.T) {
	config := servertest.File(t, fmt.Sprintf("{\"mcpServers\": {\"one\": {\"url\": %q},\n\"bad\": {\"command\": \"x\", \"env\": {\"T\": \"${NOT_SET_ANYWHERE}\"}}}}", servertest.Serve(t, servertest.NewTools("a"))))
	named := config + ":2: mcpServers.bad.env.T: the environment variable NOT_SET_ANYWHERE is not set: set it, or write ${NOT_SET_ANYWHERE:-default}; the server is left out\n"
	for _, c := range []struct {
		args   []string
		status int
		out    string // what it begins with
		log    string
	}{
		{[]string{"doctor"}, cli.ExitFailed, "SERVER  STATUS    TOOLS", "mcpactor: " + inputs.PinHint(config) + "\n"},
		{[]string{"call", "one", "a"}, cli.ExitOK, "a\n", "mcpactor: " + named},
		{[]string{"tools"}, cli.ExitOK, "NAME", "mcpactor: " + named},
		{[]string{"call", "bad", "a"}, cli.ExitUsage, "", "mcpactor: " + named},
		{[]string{"call", "badd", "a"}, cli.ExitUsage, "", "mcpactor: there is no server \"badd\": did you mean \"bad\"?\n"},
	} {
		var out, log strings.Builder
		require.Equal(t, c.status, run(append(c.args, "--config", config), nil, &out, &log), log.String())
		require.True(t, strings.HasPrefix(out.String(), c.out), out.String())
		require.Equal(t, c.log, log.String())
		require.Equal(t, c.args[0] == "doctor", strings.HasSuffix(out.String(), named), "%v: %s", c.args, out.String())
	}
	var out, log strings.Builder
	alone := servertest.File(t, `{"mcpServers": {"bad": {"command": 7}}}`)
	require.Equal(t, cli.ExitUsage, run([]string{"doctor", "--config", alone}, nil, &out, &log))
	require.Contains(t, log.String(), "mcpServers.bad.command: is a number, want a string")
}

// A name that no server can have is shown with the one that it gets, and means the same server.
func TestNameInTheFileMeansTheServerToo(t *testing.T) {
	config := servertest.File(t, fmt.Sprintf(`{"mcpServers": {"数据": {"url": %q}}}`, servertest.Serve(t, servertest.NewTools("a"))))
	var out, log strings.Builder
	require.Equal(t, cli.ExitOK, run([]string{"doctor", "--config", config}, nil, &out, &log))
	require.Regexp(t, `(?m)^server-[0-9a-f]{8}: its name in the file is "数据": `, out.String())
	out.Reset()
	require.Equal(t, cli.ExitOK, run([]string{"call", "--config", config, "数据", "a"}, nil, &out, &log), log.String())
	require.Equal(t, "a\n", out.String())
}

func TestDoctorWarnsOfContainersThatOutliveTheirSessions(t *testing.T) {
	config := servertest.File(t, `{"mcpServers": {"notes": {"command": "/no/such/docker", "args": ["run", "-i", "--init", "notes"]}}}`)
	var out, log strings.Builder
	require.Equal(t, cli.ExitFailed, run([]string{"doctor", "--config", config}, nil, &out, &log))
	lines := squeezed(out.String())
	require.Len(t, lines, 4)
	require.Contains(t, lines[2], "notes: args: docker run has no --rm")
	require.Contains(t, lines[3], "notes: cleanup: is missing")
}
