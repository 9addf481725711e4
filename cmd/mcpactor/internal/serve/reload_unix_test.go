//go:build unix

package serve

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// A client gets the servers of a file that is changed while it is connected. What it has of others stays: their processes run on.
func TestClientGetsTheServersOfAFileThatIsReloaded(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	record := filepath.Join(t.TempDir(), "called")
	file := filepath.Join(t.TempDir(), "servers.json")
	entry := func(name, more string) string {
		return fmt.Sprintf(`%q: {"command": %q, "env": {%q: %q}%s}`, name, self, recordVar, record, more)
	}
	clients := `{}`
	write := func(entries ...string) {
		require.NoError(t, os.WriteFile(file, []byte(`{"mcpServers": {`+strings.Join(entries, ", ")+`}, "clients": `+clients+`}`), 0o600))
	}
	changed := make(chan struct{}, 10)
	reload := func() {
		require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
		select {
		case <-changed:
		case <-time.After(20 * time.Second):
			require.Fail(t, "the client was not told")
		}
	}
	write(entry("one", ""))
	session := servedTo(t, &mcp.ClientOptions{
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { changed <- struct{}{} },
	}, "--config", file)
	require.Equal(t, []string{"one__drop", "one__read", "one__write"}, toolsOf(t, session))

	write(entry("one", ""), entry("two", `, "deny": ["drop"]`))
	reload()
	require.Equal(t, []string{"one__drop", "one__read", "one__write", "two__read", "two__write"}, toolsOf(t, session))
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "two__write"})
	require.NoError(t, err)
	require.False(t, result.IsError)

	write(entry("two", `, "deny": ["drop"]`))
	reload()
	require.Equal(t, []string{"two__read", "two__write"}, toolsOf(t, session))

	clients = `{"tester": {"readOnly": true}}`
	write(entry("two", `, "deny": ["drop"]`))
	reload()
	require.Equal(t, []string{"two__read"}, toolsOf(t, session))
}
