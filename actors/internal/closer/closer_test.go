package closer

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/closing"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/jobs"
	"github.com/mcpactor/mcpactor/actors/internal/lists"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/member"
	"github.com/mcpactor/mcpactor/actors/internal/owners"
	"github.com/mcpactor/mcpactor/actors/internal/servers"
	"github.com/mcpactor/mcpactor/actors/internal/sessions"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// spawner spawns no actor.
type spawner int

func (s *spawner) SpawnPrefix(*actor.Props, string) *actor.PID {
	*s++
	return &actor.PID{Id: fmt.Sprint(*s)}
}

// inbox drops what an actor is sent.
type inbox struct{}

func (inbox) InvokeUserMessage(any)    {}
func (inbox) InvokeSystemMessage(any)  {}
func (inbox) EscalateFailure(_, _ any) {}

// deaf returns the mailbox of an actor that does nothing.
func deaf() *mailbox.Mailbox {
	m := new(mailbox.Mailbox)
	m.RegisterHandlers(inbox{}, actor.NewSynchronizedDispatcher(1))
	return m
}

// newCloser returns a closer of sessions of one server.
func newCloser() *Closer {
	cfg := &contract.Config{Config: protocol.Config{Servers: []mcpbridge.Server{{Name: "s"}}, MaxSessions: 10, MaxDials: 10, Random: rand.Float64}}
	m, a, book := deaf(), new(alarm.Alarm[func()]), owners.New()
	with := With{
		Cfg: cfg, Table: table.New(servers.LimitsOf(cfg, mcpbridge.Limits{}), table.Tenants{}), Book: closing.New(closing.MinLeftovers), Alarm: a, Jobs: jobs.New(cfg, m),
	}
	with.Member = member.New(cfg, with.Table)
	gate := servers.NewGate(cfg)
	with.Sessions = sessions.New(sessions.With{
		Cfg: cfg, Mailbox: m, Table: with.Table, Gate: gate, Servers: servers.New(cfg, with.Table, gate), Lists: lists.New(lists.With{Cfg: cfg, Table: with.Table, Owners: book}),
		Owners: book, Closings: with.Book, Alarm: a,
	})
	with.Sessions.Spawner = new(spawner)
	return New(with)
}

// session spawns a session of a scope.
func (c *Closer) session(scope string) *table.Registration {
	reg := c.Sessions.Current(messages.Key{Server: "s", Scope: scope})
	reg.Mailbox = deaf()
	return reg
}

// ends removes a session that has closed its MCP session.
func (c *Closer) ends(reg *table.Registration) {
	c.Sessions.Remove(reg)
	c.SessionClosed(reg, 1, nil)
}

// A close command has its reply when the sessions are closed that there were when it came.
func TestACloseCommandWaitsForItsSessions(t *testing.T) {
	c := newCloser()
	first, other := c.session("a"), c.session("b")
	require.Nil(t, c.Close(&messages.CloseScope{Scope: "a"}, nil))
	require.Nil(t, c.Close(&messages.CloseAll{}, nil))
	require.True(t, first.Draining)
	require.True(t, other.Draining)
	require.Equal(t, 2, c.Book.Count())
	later := c.session("a")
	c.Apply(later.Key)
	require.False(t, later.Draining)
	c.ends(first)
	require.Equal(t, 1, c.Book.Count())
	c.ends(other)
	require.Zero(t, c.Book.Count())
	require.Zero(t, c.Alarm.Next())
}

// Leftovers are closed for a close command, before the next session of their key opens.
func TestLeftoversAreClosedForACloseCommand(t *testing.T) {
	c := newCloser()
	reg := c.session("a")
	c.Book.Leftovers.Add(reg.Key, []contract.Leftover{{Reason: "refused"}})
	require.Nil(t, c.Close(&messages.CloseSession{Key: reg.Key}, nil))
	require.Len(t, c.Table.Entry(reg.Key).Draining, 2)
	cleanup := c.Table.Entry(reg.Key).Draining[1]
	require.True(t, cleanup.Cleanup)
	require.Same(t, reg, c.Table.Entry(reg.Key).Predecessor(cleanup))
	c.ends(reg)
	require.Equal(t, 1, c.Book.Count())
	c.ends(cleanup)
	require.Zero(t, c.Book.Count())
}

func TestTheCloseCommandsOfAScopeAreBounded(t *testing.T) {
	c := newCloser()
	c.session("a")
	for range closing.MaxOfScope {
		require.Nil(t, c.Close(&messages.CloseScope{Scope: "a"}, nil))
	}
	require.Equal(t, messages.CodeBusy, c.Close(&messages.CloseScope{Scope: "a"}, nil).Code)
	require.Nil(t, c.Close(&messages.CloseScope{Scope: "b"}, nil))
}
