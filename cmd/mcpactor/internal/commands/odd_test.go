package commands

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/tests/oddtest"
)

// oddFile returns a file with an odd server.
func oddFile(t *testing.T, s *oddtest.Server) (path string) {
	web := httptest.NewServer(s)
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	path = filepath.Join(t.TempDir(), "servers.json")
	require.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `{"mcpServers":{"s":{"url":"%s/mcp"}}}`, web.URL), 0o600))
	return path
}

func TestCallPassesOnWhatIsOdd(t *testing.T) {
	failed := `{"content":[{"type":"text","text":"boom"}],"isError":true,"resultType":5}`
	for _, odd := range append(oddtest.Some("tools/call", 12, 3), oddtest.Odd{Method: "tools/call", Path: "resultType", Value: "5", Result: failed}) {
		s := new(oddtest.Server)
		s.Set(odd.Method, odd.Result)
		var out, words, log strings.Builder
		path := oddFile(t, s)
		want := 0
		switch {
		case odd.IsFatal():
			want = exitMayHaveRun
		case strings.HasPrefix(odd.Path, "isError") && strings.Contains(odd.Value, "true"):
			want = exitToolError
		}
		for _, args := range [][]string{{"call", "--config", path, "--json", "s", "first"}, {"call", "--config", path, "s", "first"}} {
			to := &out
			if len(args) == 5 {
				to = &words
			}
			require.Equal(t, want, run(args, nil, to, &log), "%s: %s", odd.Name, log.String())
		}
		if odd.IsFatal() {
			continue
		}
		require.Equal(t, odd.Result+"\n", out.String())
		require.NotContains(t, log.String(), "may have run")
	}
}

// No list is hidden, and what is odd about it is named: a listing does not run twice.
func TestToolsNamesWhatIsOdd(t *testing.T) {
	for tools, want := range map[string]string{
		`{"tools":[{"name":"bad","annotations":{"readOnlyHint":"true"}},{"name":"good"}]}`: `s: tools[0] ("bad").annotations.readOnlyHint is a string, and was left out`,
		`{"tools":[{"name":5},{"name":"good"}]}`:                                           `s: tools[0] is an object that cannot be read, and was left out`,
		`{"tools":[{"name":"good"}],"nextCursor":2}`:                                       `s: the list is incomplete: the cursor on page 1 is no text`,
	} {
		s := new(oddtest.Server)
		s.Set("tools/list", tools)
		var out, log strings.Builder
		path := oddFile(t, s)
		require.Zero(t, run([]string{"tools", "--config", path}, nil, &out, &log), "%s%s", &out, &log)
		require.Contains(t, out.String(), "s__good")
		require.Contains(t, log.String(), want)
		var found strings.Builder
		require.Zero(t, run([]string{"doctor", "--config", path}, nil, &found, &log), "%s%s", &found, &log)
		require.Contains(t, found.String(), want)
	}
	s := new(oddtest.Server)
	s.Set("tools/list", `5`)
	var out, log strings.Builder
	require.NotZero(t, run([]string{"tools", "--config", oddFile(t, s)}, nil, &out, &log))
	require.NotContains(t, log.String(), "may have run")
}
