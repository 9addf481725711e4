package inputs_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/cmd/mcpactor/internal/inputs"
	"github.com/mcpactor/mcpactor/config"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/pin"
)

func TestLockFileIsBesideTheConfiguration(t *testing.T) {
	for config, want := range map[string]string{
		"mcp.json": "mcp.lock.json", "/home/ada/.mcp.json": "/home/ada/.mcp.lock.json", "servers.yaml": "servers.lock.json", "a.b/servers": "a.b/servers.lock.json",
	} {
		require.Equal(t, want, inputs.PinsBeside(config))
	}
	none, err := inputs.OpenPins("", filepath.Join(t.TempDir(), "mcp.json"))
	require.NoError(t, err)
	require.Nil(t, none)
	require.NoError(t, none.Tool("web", "search", "sha256:0"))
	none.Watch(nil, nil)()
}

// A lock file is read again when it has changed. One that is gone or invalid changes nothing.
func TestLockFileThatHasChangedIsReadAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, written := filepath.Join(t.TempDir(), "mcp.lock.json"), time.Now()
		write := func(text string) {
			written = written.Add(time.Second)
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			require.NoError(t, os.Chtimes(path, written, written))
		}
		instructions := func(text string) *pin.Server { return &pin.Server{Instructions: pin.OfInstructions(text)} }
		accept := func(text string) {
			require.NoError(t, (&pin.Lock{Servers: map[string]*pin.Server{"web": instructions(text)}}).Write(path))
			data, err := os.ReadFile(path)
			require.NoError(t, err)
			write(string(data))
		}
		accept("one")
		pins, err := inputs.OpenPins(path, "")
		require.NoError(t, err)
		var log strings.Builder
		logger, changes := zerolog.New(&log), 0
		defer pins.Watch(&logger, func() { changes++ })()
		accepts := func(text string) bool {
			time.Sleep(5 * time.Second)
			synctest.Wait()
			return pins.Instructions("web", instructions(text).Instructions.Digest) == nil
		}
		require.True(t, accepts("one"))
		require.False(t, accepts("two"))
		accept("two")
		require.True(t, accepts("two"))
		require.False(t, accepts("one"))
		require.Equal(t, 1, changes)
		write("{")
		require.True(t, accepts("two"))
		require.Contains(t, log.String(), "lock file was invalid, nothing was reloaded")
		require.NoError(t, os.Remove(path))
		require.True(t, accepts("two"))
		require.Equal(t, 1, changes)
		accept("three")
		require.True(t, accepts("three"))
		require.Equal(t, 2, changes)
	})
}

// A server that runs stays as it is if its entry is changed, until that is accepted: see CVE-2025-54136.
func TestServerOfAChangedFileIsReplacedOnceItIsAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path, written := filepath.Join(t.TempDir(), "mcp.json"), time.Now()
		run := func(command string) {
			written = written.Add(time.Second)
			require.NoError(t, os.WriteFile(path, []byte(`{"mcpServers": {"a": {"command": "`+command+`"}}}`), 0o600))
			require.NoError(t, os.Chtimes(path, written, written))
		}
		accept := func(command string) {
			lock := &pin.Lock{Servers: map[string]*pin.Server{"a": {Identity: pin.Identity{Command: []string{command}}}}}
			require.NoError(t, lock.Write(inputs.PinsBeside(path)))
			written = written.Add(time.Second)
			require.NoError(t, os.Chtimes(inputs.PinsBeside(path), written, written))
		}
		run("one")
		accept("one")
		r, err := inputs.NewReloader(inputs.NewLoader(inputs.Flags{}, &cli.Program{}), path)
		require.NoError(t, err)
		var log strings.Builder
		logger := zerolog.New(&log)
		r.Log = &logger
		var runs []string
		asked := make(chan struct{}, 1)
		defer r.Loader.Pins.Watch(&logger, func() { asked <- struct{}{} })()
		defer r.Run(nil, asked, true, func(_ context.Context, file *config.File) (*messages.Closed, error) {
			runs = append(runs, file.Supervisor.Servers[0].Command)
			return &messages.Closed{}, nil
		})()
		rest := func() {
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		run("two")
		rest()
		require.Empty(t, runs)
		require.Contains(t, log.String(), "not the one that was accepted (command)")
		accept("two")
		rest()
		require.Equal(t, []string{"two"}, runs)
	})
}
