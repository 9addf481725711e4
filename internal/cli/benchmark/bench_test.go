package benchmark

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProfilesAreWritten(t *testing.T) {
	cpu, mem := filepath.Join(t.TempDir(), "cpu.pprof"), filepath.Join(t.TempDir(), "mem.pprof")
	stop, err := startProfile(cpu)
	require.NoError(t, err)
	require.NoError(t, stop())
	require.NoError(t, writeFile(mem, writeAllocs))
	for _, file := range []string{cpu, mem} {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		require.NotEmpty(t, text)
	}

	stop, err = startProfile("")
	require.NoError(t, err)
	require.NoError(t, stop())
	_, err = startProfile(t.TempDir())
	require.Error(t, err)
}
