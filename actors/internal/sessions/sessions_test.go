package sessions_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/sessions/sessionstest"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

var key = messages.Key{Server: "s", Scope: "a"}

func TestAKeyHasOneSessionThatTakesItsCalls(t *testing.T) {
	s := sessionstest.New(protocol.Config{})
	first := s.Current(key)
	require.Same(t, first, s.Current(key))
	require.Equal(t, messages.StateWaiting, first.State())
	sessionstest.Follow(first)
	s.Drain(first, contract.Drain{Evict: true})
	require.Equal(t, messages.StateDraining, first.State())
	next := s.Current(key)
	require.NotSame(t, first, next)
	require.Same(t, first, s.Table.Entry(key).Predecessor(next), "the next one waits")
	require.Equal(t, []*table.Registration{next}, s.Remove(first))
	require.Nil(t, s.Table.Entry(key).Predecessor(next))
	require.Equal(t, 2, s.Children, "the ends of their actors are not known")
}

// A session that drains is told once more only to close sooner. One that is closed for good is not left open by a restart, and one that
// is left open by a stop is not closed.
func TestASessionThatDrainsIsToldToCloseSooner(t *testing.T) {
	evict, restart := contract.Drain{Evict: true}, contract.Drain{Evict: true, Restart: true}
	var closes contract.Drain
	now, leave := contract.Drain{Now: true}, contract.Drain{Leave: true}
	moves := contract.Drain{Evict: true, Restart: true, Moves: true, Leave: true}
	for _, test := range []struct {
		before, how contract.Drain
		told        *contract.Drain // nil if it is not told
	}{
		{evict, evict, nil},
		{evict, restart, &restart},
		{restart, evict, nil},
		{restart, moves, &moves},
		{evict, closes, &closes},
		{closes, restart, nil},
		{closes, leave, nil},
		{closes, now, &now},
		{closes, contract.Drain{Now: true, Leave: true}, &now},
		{leave, now, &contract.Drain{Now: true, Leave: true}},
		{now, closes, nil},
	} {
		s := sessionstest.New(protocol.Config{})
		reg := s.Current(key)
		read := sessionstest.Follow(reg)
		s.Drain(reg, test.before)
		read.Take()
		s.Drain(reg, test.how)
		if test.told == nil {
			require.Empty(t, *read.Inbox, "%+v", test)
			require.Equal(t, test.before, reg.DrainedBy)
			continue
		}
		require.Equal(t, []any{test.told}, read.Take(), "%+v", test)
		require.Equal(t, *test.told, reg.DrainedBy)
	}
}

func TestWhatClosesLeftoversTakesNoCalls(t *testing.T) {
	s := sessionstest.New(protocol.Config{})
	reg := s.CleanUp(messages.Key{Server: "removed", Scope: "a"}, []contract.Leftover{{}}, true)
	read := sessionstest.Follow(reg)
	s.Drain(reg, contract.Drain{Now: true})
	require.Empty(t, *read.Inbox, "it ends when its work is done")
	require.Nil(t, s.Table.Current(reg.Key))
	require.False(t, s.Table.Entry(reg.Key).ClosesRecord())
	s.Remove(reg)
	require.Zero(t, s.Table.Keys())
}
