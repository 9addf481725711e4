package login_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/logintest"
	"github.com/mcpactor/mcpactor/login"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/resume"
)

var secret = []byte("a secret of at least 32 random bytes")

// shared returns what a member of a cluster has of a store.
func shared(t *testing.T, store mcpbridge.Swapper) login.Store {
	t.Helper()
	s, err := login.Shared(store, secret)
	require.NoError(t, err)
	return s
}

func TestMemoryIsAStore(t *testing.T) {
	t.Parallel()
	logintest.Run(t, func(*testing.T) (one, other login.Store) {
		m := new(login.Memory)
		return m, m
	})
}

func TestFolderIsAStore(t *testing.T) {
	t.Parallel()
	logintest.Run(t, func(t *testing.T) (one, other login.Store) {
		f := login.Folder(filepath.Join(t.TempDir(), "made", "here"))
		return f, f
	})
}

func TestSharedIsAStore(t *testing.T) {
	t.Parallel()
	logintest.Run(t, func(t *testing.T) (one, other login.Store) {
		m := new(resume.Memory)
		return shared(t, m), shared(t, m)
	})
	logintest.Run(t, func(t *testing.T) (one, other login.Store) {
		f, err := resume.Open(filepath.Join(t.TempDir(), "sessions"), resume.Config{})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, f.Close()) })
		return shared(t, f), shared(t, f)
	})
}
