package resume

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume/storetest"
)

const secret = storetest.Secret

func key(server, scope string) messages.Key { return messages.Key{Server: server, Scope: scope} }

func sample(generation uint64) *mcpbridge.Record { return storetest.Record(generation) }

func openAt(t testing.TB, path string, cfg Config) *File {
	t.Helper()
	f, err := Open(path, cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, f.Close()) })
	return f
}

func pathIn(t testing.TB) string { return filepath.Join(t.TempDir(), "sessions.db") }

func TestMemoryIsAStore(t *testing.T) {
	storetest.Run(t, func(*testing.T) mcpbridge.Store { return new(Memory) })
	storetest.RunShared(t, func(*testing.T) (one, other mcpbridge.Store) {
		m := new(Memory) // shared by two supervisors of a process
		return m, m
	})
	storetest.RunSwap(t, func(*testing.T) (one, other mcpbridge.Swapper) {
		m := new(Memory)
		return m, m
	})
	storetest.RunGarbage(t, func(*testing.T) (mcpbridge.Store, func(messages.Key, []byte)) {
		m := new(Memory)
		return m, func(k messages.Key, value []byte) { m.entries[k.Normal()] = value }
	})
}

func TestFileIsAStore(t *testing.T) {
	storetest.Run(t, func(t *testing.T) mcpbridge.Store { return openAt(t, pathIn(t), Config{}) })
	storetest.RunSwap(t, func(t *testing.T) (one, other mcpbridge.Swapper) {
		f := openAt(t, pathIn(t), Config{})
		return f, f
	})
	storetest.RunGarbage(t, func(t *testing.T) (mcpbridge.Store, func(messages.Key, []byte)) {
		f := openAt(t, pathIn(t), Config{})
		return f, func(k messages.Key, value []byte) { put(t, f, k, value) }
	})
}

// asKept is an entry in the form of the file.
func asKept(t testing.TB, saved string, r *mcpbridge.Record) []byte {
	t.Helper()
	record, err := json.Marshal(r)
	require.NoError(t, err)
	return fmt.Appendf(nil, `{"saved":%q,"record":%s}`, saved, record)
}
