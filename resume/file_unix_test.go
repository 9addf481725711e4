//go:build unix

package resume

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestTheFileIsPrivateWhateverTheUmask(t *testing.T) {
	for _, umask := range []int{0, 0o022, 0o077} {
		path := pathIn(t)
		old := syscall.Umask(umask)
		created, err := openPrivate(path, os.O_RDWR|os.O_CREATE, 0o600) // before anything is written
		syscall.Umask(old)
		require.NoError(t, err)
		check := func() {
			info, err := os.Stat(path)
			require.NoError(t, err)
			require.EqualValues(t, 0o600, info.Mode().Perm())
		}
		check()
		require.NoError(t, created.Close())
		require.NoError(t, os.Remove(path))

		old = syscall.Umask(umask)
		f, err := Open(path, Config{})
		syscall.Umask(old)
		require.NoError(t, err)
		check()
		require.NoError(t, f.Save(ctx, key("a", "b"), sample(1)))
		require.NoError(t, f.Close())
		check()
	}
}

func TestAFileThatOthersMayUseIsRefused(t *testing.T) {
	path, _ := filled(t)
	empty := pathIn(t)
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	for _, path := range []string{path, empty} {
		for _, mode := range []os.FileMode{0o644, 0o640, 0o604, 0o620, 0o602, 0o601, 0o666} {
			require.NoError(t, os.Chmod(path, mode))
			same := unchanged(t, path)
			_, err := Open(path, Config{})
			require.ErrorIs(t, err, errMode)
			require.ErrorContains(t, err, "mode is 0"+modeText(mode))
			require.ErrorContains(t, err, "chmod 600 "+path)
			same()
		}
		require.NoError(t, os.Chmod(path, 0o600))
		openAt(t, path, Config{})
	}
}

func modeText(mode os.FileMode) string {
	return string([]byte{'0' + byte(mode>>6&7), '0' + byte(mode>>3&7), '0' + byte(mode&7)})
}

func TestAPipeIsNoStore(t *testing.T) {
	path := pathIn(t)
	require.NoError(t, unix.Mkfifo(path, 0o600))
	_, err := Open(path, Config{}) // it does not wait for a reader
	require.ErrorIs(t, err, errForeign)
}
