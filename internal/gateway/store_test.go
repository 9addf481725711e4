package gateway

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/resume"
)

func TestStoreSwapsIfThatOfSessionsDoes(t *testing.T) {
	lists, sessions := &ListStore{t.TempDir()}, new(resume.Memory)
	_, ok := storeOf(lists, struct{ mcpbridge.Store }{sessions}).(mcpbridge.Swapper)
	require.False(t, ok)
	s, ok := storeOf(lists, sessions).(mcpbridge.Swapper)
	require.True(t, ok)
	key, record := messages.Key{Server: "s"}, &mcpbridge.Record{Version: 1}
	swapped, err := s.Swap(t.Context(), key, 0, record)
	require.NoError(t, err)
	require.True(t, swapped)
	got, err := sessions.Load(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, record, got)
}
