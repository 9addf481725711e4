package target

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestServerOfACommandIsNamedAfterWhatRuns(t *testing.T) {
	for command, name := range map[string]string{
		"node /a/@modelcontextprotocol/server-everything/dist/index.js": "server-everything", "python3 server.py": "server.py", "uvx mcp-server-git": "mcp-server-git",
		"/opt/my-server --x": "my-server",
	} {
		require.Equal(t, name, nameOf(strings.Fields(command)))
	}
}
