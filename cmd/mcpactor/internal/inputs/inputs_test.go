package inputs_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
)

// vsCode writes a file of VS Code with a server that needs an input, and one that needs none. The
// first checks the value.
func vsCode(t *testing.T, value string) (path string) {
	t.Helper()
	server := servertest.NewTools("guarded")
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{Stateless: true})
	guarded := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if req.Header.Get("Authorization") != "Bearer "+value {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, req)
	}))
	t.Cleanup(guarded.Close)
	return servertest.File(t, fmt.Sprintf(`{
		"inputs": [{"type": "promptString", "id": "key", "description": "The\tkey", "password": true}],
		"servers": {"guarded": {"url": %q, "headers": {"Authorization": "Bearer ${input:key}"}}, "open": {"url": %q}}
	}`, guarded.URL, servertest.Serve(t, servertest.NewTools("a"))))
}

func TestInputIsGivenByAFlag(t *testing.T) {
	config := vsCode(t, "a;b=c")
	var out, log strings.Builder
	require.Equal(t, cli.ExitOK, run([]string{"tools", "--config", config, "--input", "key=a;b=c"}, nil, &out, &log), log.String())
	require.Contains(t, out.String(), "guarded__guarded")
	require.Contains(t, out.String(), "open__a")
	out.Reset()
	request := `{"id":"1","server":"guarded","tool":"guarded"}`
	require.Equal(t, cli.ExitOK, run([]string{"exec", "--config", config, "--input", "key=a;b=c"}, strings.NewReader(request), &out, &log), out.String())
	require.NotContains(t, log.String(), "a;b=c")
}

func TestServerWhoseInputIsNotGivenIsLeftOut(t *testing.T) {
	config := vsCode(t, "x")
	var out, log strings.Builder
	require.Equal(t, cli.ExitOK, run([]string{"tools", "--config", config}, strings.NewReader("x\n"), &out, &log), log.String())
	require.NotContains(t, out.String(), "guarded")
	require.Contains(t, out.String(), "open__a")
	require.Contains(t, log.String(), `needs the input "key": give --input key=VALUE; the server is left out`)
}

func TestInputThatTheFileDoesNotHaveIsAnError(t *testing.T) {
	inputs := `"inputs": [{"type": "promptString", "id": "token"}, {"type": "promptString", "id": "unused"}]`
	open := fmt.Sprintf(`"open": {"url": %q}`, servertest.Serve(t, servertest.NewTools("a")))
	needy := `"needy": {"url": "http://127.0.0.1:9/${input:token}"}`
	for _, c := range []struct{ file, given, want string }{
		{"{" + inputs + `, "servers": {` + open + ", " + needy + "}}", "tokn=x", `--input: no input of FILE has the id "tokn": did you mean "token"?`},
		{"{" + inputs + `, "servers": {` + needy + "}}", "tokn=x", `--input: no input of FILE has the id "tokn": did you mean "token"?`},
		{"{" + inputs + `, "servers": {` + open + "}}", "other=x", `--input: no input of FILE has the id "other"`},
		{`{"mcpServers": {` + open + "}}", "token=x", `--input: no input of FILE has the id "token"`},
		{"{" + inputs + `, "servers": {` + needy + "}}", "unused=x", `servers.needy.url: needs the input "token": give --input token=VALUE`},
		{"{" + inputs + `, "servers": {` + open + "}}", "unused=x", ""},
	} {
		config := servertest.File(t, c.file)
		for _, command := range []string{"tools", "exec"} {
			var out, log strings.Builder
			status := run([]string{command, "--config", config, "--input", c.given}, strings.NewReader(""), &out, &log)
			require.Equal(t, c.want == "", status == cli.ExitOK, log.String())
			require.Contains(t, log.String(), strings.ReplaceAll(c.want, "FILE", config))
		}
	}
}
