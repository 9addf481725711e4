package listfile

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/recordkey"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
)

func TestStoreSwapsIfThatOfSessionsDoes(t *testing.T) {
	lists, sessions := &Store{t.TempDir()}, new(resume.Memory)
	_, ok := Beside(lists, struct{ mcpbridge.Store }{sessions}).(mcpbridge.Swapper)
	require.False(t, ok)
	s, ok := Beside(lists, sessions).(mcpbridge.Swapper)
	require.True(t, ok)
	key, record := messages.Key{Server: "s"}, &mcpbridge.Record{Version: 1}
	swapped, err := s.Swap(t.Context(), key, 0, record)
	require.NoError(t, err)
	require.True(t, swapped)
	got, err := sessions.Load(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, record, got)
}

// A store that does not keep a record says so.
func TestStoreRefusesWhatIsNoList(t *testing.T) {
	s := &Store{t.TempDir()}
	require.ErrorIs(t, s.Save(t.Context(), messages.Key{Server: "s", Scope: "a"}, &mcpbridge.Record{Generation: 1}), errListsOnly)
	require.Error(t, s.Save(t.Context(), recordkey.List("s", "1"), &mcpbridge.Record{List: []byte("{")}))
	require.NoError(t, s.Save(t.Context(), recordkey.List("s", "1"), &mcpbridge.Record{List: []byte("{}")}))
}
