package tests

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/messages"
)

// A file gives each scope its own arguments, environment and directory. A scope that would
// lead out of them is refused before anything is started, and harms no other.
func TestScopeInAFileIsThatOfEachKey(t *testing.T) {
	root := t.TempDir()
	exe, err := os.Executable()
	require.NoError(t, err)
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"s": map[string]any{
		"command": exe, "args": []string{"--user", "${scope}", "--root=" + root + "/${scope}"}, "cwd": root + "/${scope}",
		"env": map[string]string{describeVar: "1", "TOKEN": "of ${scope}", "GORACE": "atexit_sleep_ms=0"},
	}}})
	require.NoError(t, err)
	file, err := config.Loader{}.Parse(text)
	require.NoError(t, err)
	before := resourcesInUse()
	h := start(t, file.Supervisor)
	defer h.stop()
	for _, scope := range []string{"ann", "$(touch pwned) `id`; 'x", "bob@example.com"} {
		dir, err := filepath.EvalSymlinks(root)
		require.NoError(t, err)
		require.Equal(t, description{[]string{"--user", scope, "--root=" + root + "/" + scope}, "of " + scope, filepath.Join(dir, scope)}, h.described(scope))
	}
	dials := h.dials.dialed()
	for _, scope := range []string{"../x", "..", ".", "/etc", "a/../../b", `..\x`, "ann/../bob"} {
		f := h.send(call(scope, "describe")).fails(messages.CodeInvalid)
		require.Contains(t, f.Error(), "args[2]: the scope", fmt.Sprint(scope))
		require.False(t, f.MayHaveRun)
	}
	require.Equal(t, dials+7, h.dials.dialed(), "each is tried once")
	found, err := os.ReadDir(root)
	require.NoError(t, err)
	require.Len(t, found, 3)
	h.described("ann")
	h.stopAndVerify()
	before.verify(t)
}
