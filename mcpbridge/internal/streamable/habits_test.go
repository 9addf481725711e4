package streamable

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

func TestForgetForgetsTheHabitsOfAServer(t *testing.T) {
	s := New(&mcpbridge.Server{Name: "s", URL: "http://test"}).(*Server)
	s.habits.lingers.Store(true)
	s.habits.streams.Store(true)
	s.habits.lateStreams.Store(true)
	s.Forget()
	require.False(t, s.habits.lingers.Load() || s.habits.streams.Load() || s.habits.lateStreams.Load())
}
