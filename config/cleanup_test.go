package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

func TestCleanupOfAServerIsReadAndIsTheSameForEachScope(t *testing.T) {
	srv := serverWith(t, `{"command": "docker", "args": ["run", "--name", "{session}", "notes"], "cwd": %q, "env": {"SCOPE": "${scope}"},
		"cleanup": {"command": "docker", "args": ["rm", "--force", "{session}"], "timeout": "30s", "records": "/var/lib/records"}}`, t.TempDir())
	want := mcpbridge.Cleanup{
		Command: "docker", Args: []string{"rm", "--force", mcpbridge.SessionMark}, Timeout: 30 * time.Second, Records: "/var/lib/records",
	}
	require.Equal(t, want, srv.Cleanup)
	of, err := ofScope(t, srv, "ann")
	require.NoError(t, err)
	require.Equal(t, want, of.Cleanup)
}

func TestWrongCleanupsAreNamedWithTheirLine(t *testing.T) {
	for cleanup, want := range map[string]string{
		"{\n\"comand\": \"docker\"}":                               `line 2: mcpServers.a.cleanup.comand: is not a field: did you mean "command"?`,
		"{\"command\": \"docker\",\n\"args\": [\"${scope}\"]}":     `line 2: mcpServers.a.cleanup.args[0]: cannot depend on the scope`,
		"{\"command\": \"docker\", \"args\": [\"rm\", \"a\"]}":     `line 1: mcpServers.a: cleanup.args: none has {session}`,
		"{\"command\": \"docker\",\n\"args\": [], \"timeout\": 5}": `line 2: mcpServers.a.cleanup.timeout: want a duration such as "30s"`,
		"\"docker rm\"": `mcpServers.a.cleanup: is a string, want an object`,
	} {
		_, err := parse(`{"mcpServers": {"a": {"command": "x", "args": ["{session}"], "cleanup": ` + cleanup + `}}}`)
		require.ErrorContains(t, err, want)
	}
}
