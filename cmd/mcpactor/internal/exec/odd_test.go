package exec

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/servertest"
	"github.com/mcpactor/mcpactor/tests/oddtest"
)

// What a server sends is passed on as it came, whatever is odd about it: 1.0 stays 1.0.
func TestExecPassesOnWhatIsOdd(t *testing.T) {
	s := new(oddtest.Server)
	web := httptest.NewServer(s)
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	path, calls := servertest.File(t, fmt.Sprintf(`{"mcpServers":{"s":{"url":"%s/mcp"}}}`, web.URL)), oddtest.Some("tools/call", 100, 3)
	s.Follow(calls)
	var out, log strings.Builder
	in := `{"id":0,"name":"s__first"}` + "\n"
	for i := 1; i < len(calls); i++ {
		in += fmt.Sprintf(`{"id":%d,"server":"s","tool":"first"}`+"\n", i)
	}
	require.Equal(t, 1, run([]string{"exec", "--config", path}, strings.NewReader(in), &out, &log), "%s", &out)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, len(calls))
	for i, line := range lines {
		var answer struct {
			OK     bool
			Result json.RawMessage
		}
		require.NoError(t, json.Unmarshal([]byte(line), &answer))
		require.Equal(t, !calls[i].IsFatal(), answer.OK, line)
		if calls[i].IsFatal() {
			require.Contains(t, line, `"protocol"`)
			continue
		}
		require.Equal(t, calls[i].Result, string(answer.Result), calls[i].Name)
	}
}
