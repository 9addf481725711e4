package serve

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

func TestProcessesThatStartAtOnceHaveOneKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	keys := make([][]byte, 50)
	var all errgroup.Group
	for i := range keys {
		all.Go(func() (err error) {
			keys[i], err = readKey(file)
			return err
		})
	}
	require.NoError(t, all.Wait())
	require.Len(t, keys[0], keySize)
	require.NotEqual(t, make([]byte, keySize), keys[0])
	for _, key := range keys {
		require.Equal(t, keys[0], key)
	}
	files, err := os.ReadDir(filepath.Dir(file))
	require.NoError(t, err)
	require.Len(t, files, 1, "nothing else is left")
	another, err := readKey(filepath.Join(t.TempDir(), "key"))
	require.NoError(t, err)
	require.NotEqual(t, keys[0], another)

	require.NoError(t, os.WriteFile(file, keys[0][1:], 0o600))
	_, err = readKey(file)
	require.ErrorContains(t, err, "has 31 bytes, and is no key: delete it")
	_, err = readKey(filepath.Join(t.TempDir(), "none", "key"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
