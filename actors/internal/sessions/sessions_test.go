package sessions

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/closing"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/lists"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/owners"
	"github.com/mcpactor/mcpactor/actors/internal/servers"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// spawner counts the actors that it is asked to spawn, and spawns none.
type spawner int

func (s *spawner) SpawnPrefix(*actor.Props, string) *actor.PID {
	*s++
	return &actor.PID{Id: fmt.Sprint(*s)}
}

// inbox has what a session is sent.
type inbox []any

func (b *inbox) InvokeUserMessage(msg any) { *b = append(*b, msg) }
func (*inbox) InvokeSystemMessage(any)     {}
func (*inbox) EscalateFailure(_, _ any)    {}

// follow notes what a session is sent from now on.
func follow(reg *table.Registration) *inbox {
	read := new(inbox)
	reg.Mailbox = new(mailbox.Mailbox)
	reg.Mailbox.RegisterHandlers(read, actor.NewSynchronizedDispatcher(1))
	return read
}

// newSessions returns sessions of a server whose actors do nothing.
func newSessions() *Sessions {
	cfg := &contract.Config{Config: protocol.Config{Servers: []mcpbridge.Server{{Name: "s"}}, MaxSessions: 10, MaxDials: 10, Random: rand.Float64}}
	with := With{
		Cfg: cfg, Mailbox: new(mailbox.Mailbox), Table: table.New(servers.LimitsOf(cfg, mcpbridge.Limits{}), table.Tenants{}), Gate: servers.NewGate(cfg),
		Owners: owners.New(), Closings: closing.New(10), Alarm: new(alarm.Alarm[func()]),
	}
	with.Servers = servers.New(cfg, with.Table, with.Gate)
	with.Lists = lists.New(lists.With{Cfg: cfg, Table: with.Table, Owners: with.Owners})
	s := New(with)
	s.Spawner = new(spawner)
	return s
}

var key = messages.Key{Server: "s", Scope: "a"}

func TestAKeyHasOneSessionThatTakesItsCalls(t *testing.T) {
	s := newSessions()
	first := s.Current(key)
	require.Same(t, first, s.Current(key))
	require.Equal(t, messages.StateWaiting, first.State())
	follow(first)
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
		s := newSessions()
		reg := s.Current(key)
		read := follow(reg)
		s.Drain(reg, test.before)
		*read = nil
		s.Drain(reg, test.how)
		if test.told == nil {
			require.Empty(t, *read, "%+v", test)
			require.Equal(t, test.before, reg.DrainedBy)
			continue
		}
		require.Equal(t, &inbox{test.told}, read, "%+v", test)
		require.Equal(t, *test.told, reg.DrainedBy)
	}
}

func TestWhatClosesLeftoversTakesNoCalls(t *testing.T) {
	s := newSessions()
	reg := s.CleanUp(messages.Key{Server: "removed", Scope: "a"}, []contract.Leftover{{}}, true)
	read := follow(reg)
	s.Drain(reg, contract.Drain{Now: true})
	require.Empty(t, *read, "it ends when its work is done")
	require.Nil(t, s.Table.Current(reg.Key))
	require.False(t, s.Table.Entry(reg.Key).ClosesRecord())
	s.Remove(reg)
	require.Zero(t, s.Table.Keys())
}
