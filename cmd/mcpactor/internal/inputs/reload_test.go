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
)

// A file is loaded again when it has changed and then rests, however it is replaced. One that is invalid changes nothing.
func TestFileThatHasChangedIsLoadedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "servers.json")
		written := time.Now()
		write := func(path, text string) {
			written = written.Add(time.Second)
			require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
			require.NoError(t, os.Chtimes(path, written, written))
		}
		const one, two, bad = `{"mcpServers": {"a": {"command": "x"}}}`, `{"mcpServers": {"a": {"command": "x"}, "b": {"command": "y"}}}`, `{"mcpServers": {"a": {"command": 7}}}`
		write(path, one)
		loader := inputs.NewLoader(inputs.Flags{}, &cli.Program{})
		r, err := inputs.NewReloader(loader, path)
		require.NoError(t, err)
		var log strings.Builder
		logger := zerolog.New(&log)
		var applied []int
		r.Log = &logger
		end := r.Run(nil, nil, true, func(_ context.Context, file *config.File) (*messages.Closed, error) {
			applied = append(applied, len(file.Supervisor.Servers))
			return &messages.Closed{}, nil
		})
		defer end()
		rest := func() {
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		rest()
		require.Empty(t, applied)
		write(path, two)
		rest()
		require.Equal(t, []int{2}, applied)
		for range 10 { // it is being written
			write(path, bad)
			time.Sleep(time.Second)
		}
		write(path, one)
		rest()
		require.Equal(t, []int{2, 1}, applied)
		write(path, one+"\n")
		rest()
		require.Equal(t, []int{2, 1}, applied, "it says the same")
		require.NotContains(t, log.String(), "invalid")
		require.NoError(t, os.Remove(path))
		rest()
		write(path+".new", two)
		require.NoError(t, os.Rename(path+".new", path))
		rest()
		require.Equal(t, []int{2, 1, 2}, applied)
		write(path, bad)
		rest()
		require.Equal(t, []int{2, 1, 2}, applied)
		require.Contains(t, log.String(), "mcpServers.a.command")
		require.Contains(t, log.String(), "nothing was reloaded")
		end()
		write(path, one)
		rest()
		require.Equal(t, []int{2, 1, 2}, applied)
	})
}
