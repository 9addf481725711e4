//go:build unix

package serve

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/cmd/internal/cli"
	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Nobody else can read what is kept, also in folders that others could read before.
func TestFoldersOfWhatIsKeptArePrivate(t *testing.T) {
	for name, before := range map[string]fs.FileMode{"new": 0, "there": 0o755} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("HOME", t.TempDir()) // macOS
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			cache, err := os.UserCacheDir()
			require.NoError(t, err)
			folders := []string{filepath.Join(cache, "mcpactor", "listen", "127.0.0.1-4321"), filepath.Join(cache, "mcpactor", "lists")}
			if before != 0 {
				for _, folder := range folders {
					require.NoError(t, os.MkdirAll(folder, before))
				}
			}
			var plan plan
			var said bytes.Buffer
			end, err := (&Serve{listenFlags: listenFlags{Listen: "127.0.0.1:4321"}}).keep(&cli.Program{Err: &said}, &plan)
			require.NoError(t, err)
			defer end()
			require.Empty(t, said.String())
			require.NotNil(t, plan.gateway.Clients)
			key, err := os.Stat(filepath.Join(cache, "mcpactor", "key"))
			require.NoError(t, err)
			require.Equal(t, fs.FileMode(0o600), key.Mode().Perm())
			require.Len(t, plan.gateway.Key, keySize)
			require.NoError(t, plan.gateway.Lists.Save(t.Context(), recordkey.List("s", "c"), &mcpbridge.Record{List: []byte("{}")}))
			for _, folder := range folders {
				info, err := os.Stat(folder)
				require.NoError(t, err)
				require.Equal(t, fs.FileMode(0o700), info.Mode().Perm(), folder)
			}
		})
	}
}
