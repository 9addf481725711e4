package config_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

func TestHandlesOfAServerAreRead(t *testing.T) {
	file, err := parse(`
mcpServers:
  a:
    command: x
    handles:
      - {mint: open, path: session.id, release: close}
      - mint: start
        pattern: 'PID (\d+)$'
        release: stop
        argument: pid
        list: list
        listed: '(?m)^(\d+) '
        gone: no such
        full: "too many{2}"
        max: 8
        idle: 1m30s
        own: true
        unique: true
        bound: true
  b: {command: x, handles: []}
supervisor: {handleGrace: 5s}
`)
	require.NoError(t, err)
	require.Equal(t, []mcpbridge.Handle{
		{Mint: "open", Path: "session.id", Release: "close"},
		{
			Mint: "start", Pattern: `PID (\d+)$`, Release: "stop", Argument: "pid", List: "list", Listed: `(?m)^(\d+) `, Gone: "no such",
			Full: "too many{2}", Max: 8, Idle: 90 * time.Second, Own: true, Unique: true, Bound: true,
		},
	}, file.Supervisor.Servers[0].Handles)
	require.Empty(t, file.Supervisor.Servers[1].Handles)
	require.Equal(t, 5*time.Second, file.Supervisor.HandleGrace)
	require.Empty(t, file.Warnings)
}

func TestHandlesAreTheSameForEachScope(t *testing.T) {
	srv := serverWith(t, `{"command": "x", "cwd": %q, "env": {"SCOPE": "${scope}"}, "handles": [{"mint": "open", "path": "id", "release": "close"}]}`, t.TempDir())
	of, err := ofScope(t, srv, "ann")
	require.NoError(t, err)
	require.Equal(t, []mcpbridge.Handle{{Mint: "open", Path: "id", Release: "close"}}, of.Handles)
}

func TestWrongHandlesAreNamedWithTheirLine(t *testing.T) {
	const good = `{"mint": "open", "path": "id", "release": "close"}`
	for handles, want := range map[string]string{
		`"open"`:                               `line 1: mcpServers.a.handles: is a string, want a list`,
		"[\n5]":                                `line 2: mcpServers.a.handles[0]: is a number, want an object`,
		"[" + good + ",\n{\"mint\": \"new\"}]": `line 2: mcpServers.a.handles[1].release: is empty: without it nothing can be released`,
		"[{\"mint\": \"open\", \"path\": \"id\",\n\"release\": \"open\"}]":                         `line 2: mcpServers.a.handles[0].release: is the tool of mint`,
		"[{\n\"relaese\": \"close\"}]":                                                             `line 2: mcpServers.a.handles[0].relaese: is not a field: did you mean "release"?`,
		"[{\"mint\": \"open\", \"pattern\": \"(.)\", \"release\": \"close\"}]":                     `line 1: mcpServers.a.handles[0].argument: is empty`,
		"[{\"mint\": \"open\", \"path\": \"id\", \"release\": \"close\",\n\"max\": -1}]":           `line 2: mcpServers.a.handles[0].max: -1 is negative: 0 is no bound`,
		"[{\"mint\": \"open\", \"path\": \"id\", \"release\": \"close\",\n\"idle\": 5}]":           `line 2: mcpServers.a.handles[0].idle: want a duration such as "30s"`,
		"[{\"mint\": \"open\", \"path\": \"id\", \"release\": \"close\",\n\"gone\": \"(\"}]":       `line 2: mcpServers.a.handles[0].gone: "(" is not a regular expression`,
		"[{\"mint\": \"open\", \"path\": \"id\",\n\"release\": \"${scope}\"}]":                     `line 2: mcpServers.a.handles[0].release: cannot depend on the scope`,
		"[" + good + ",\n{\n\"mint\": \"open\", \"path\": \"id\", \"release\": \"close\"}]":        `line 3: mcpServers.a.handles[1].mint: "open" is that of handles[0]`,
		"[" + good + ",\n{\n\"mint\": \"new\", \"path\": \"id\",\n\"release\": \"delete\"}]":       `line 2: mcpServers.a.handles[1].argument: "id" is that of handles[0]`,
		"[{},\n{\"mint\": \"new\", \"path\": \"id\", \"release\": \"close\", \"max\": 100000000}]": `line 2: mcpServers.a.handles[1].max: 100000000 is more than`,
	} {
		_, err := parse(`{"mcpServers": {"a": {"command": "x", "handles": ` + handles + `}}}`)
		require.ErrorContains(t, err, want)
	}
	_, err := parse(`{"mcpServers": {"a": {"command": "x", "handles": [{}, {"mint": "new"}]}}}`)
	require.ErrorContains(t, err, "handles[0].mint: is empty")
	require.ErrorContains(t, err, "handles[1].release: is empty")
	_, err = parse(`{"mcpServers": {"a": {"command": "x"}}, "supervisor": {"handleGrace": 5}}`)
	require.ErrorContains(t, err, `supervisor.handleGrace: want a duration such as "30s"`)
}
