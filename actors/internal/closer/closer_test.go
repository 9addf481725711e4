package closer

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors/internal/closing"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/jobs"
	"github.com/mcpactor/mcpactor/actors/internal/keeper"
	"github.com/mcpactor/mcpactor/actors/internal/member"
	"github.com/mcpactor/mcpactor/actors/internal/sessions/sessionstest"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// newCloser returns a closer of sessions of one server.
func newCloser() *Closer {
	all := sessionstest.New(protocol.Config{})
	in, j := member.New(all.Cfg, all.Table), jobs.New(all.Cfg, all.Mailbox)
	return New(With{
		Cfg: all.Cfg, Table: all.Table, Book: all.Closings, Sessions: all, Member: in, Alarm: all.Alarm, Jobs: j,
		Keeper: keeper.New(keeper.With{Cfg: all.Cfg, Table: all.Table, Member: in, Alarm: all.Alarm, Jobs: j}),
	})
}

// session spawns a session of a scope.
func (c *Closer) session(scope string) *table.Registration {
	return sessionstest.Current(c.Sessions, messages.Key{Server: "s", Scope: scope}).Registration
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
