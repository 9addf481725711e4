package admission

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/messages"
)

// dials takes the decisions of a gate, and returns whose sessions may dial, in their order.
func dials(t *testing.T, g *Gate, now time.Time) (names []any) {
	t.Helper()
	for {
		d, found := g.Next(now)
		if !found {
			return names
		}
		require.Equal(t, Dial, d.Do)
		names = append(names, d.Session.Of)
	}
}

// wait queues a session.
func wait(g *Gate, name any, srv *Server, tenant *Tenant, now time.Time) *Session {
	s := &Session{Of: name}
	g.Join(s, srv, tenant)
	g.Use(s, false)
	g.Want(s, now)
	return s
}

func TestServersTakeTurnsAndSoDoTenants(t *testing.T) {
	now := time.Unix(1, 0)
	g := New(Config{MaxStarts: 1})
	a, b := g.NewServer("a", "a", false), g.NewServer("b", "b", false)
	g.SetLimits(a, 0, 9)
	g.SetLimits(b, 0, 9)
	many, few := new(Tenant), new(Tenant)
	many.SetLimit(0)
	few.SetLimit(0)
	for _, name := range []string{"many 1", "many 2", "many 3"} {
		wait(g, name, a, many, now)
	}
	wait(g, "few 1", a, few, now)
	wait(g, "few 2", a, few, now)
	wait(g, "none", a, nil, now)
	wait(g, "b 1", b, nil, now)
	wait(g, "b 2", b, nil, now)
	require.Equal(t, []any{"many 1", "b 1", "few 1", "b 2", "none", "many 2", "few 2", "many 3"}, dials(t, g, now))
}

func TestPlacesTakeTurns(t *testing.T) {
	now := time.Unix(1, 0)
	g := New(Config{})
	srv := g.NewServer("a", "", false)
	g.SetLimits(srv, 0, 1)
	at := func(name, address string) *Session {
		s := wait(g, name, srv, nil, now)
		require.Equal(t, []any{name}, dials(t, g, now))
		require.True(t, g.Move(s, address, now))
		g.Lost(s)
		return s
	}
	queue := func(all ...*Session) {
		for _, s := range all {
			g.Rest(s)
			g.Want(s, now)
		}
	}
	x1, x2, y1, y2 := at("x 1", "x"), at("x 2", "x"), at("y 1", "y"), at("y 2", "y")
	queue(x1, x2, y1)
	require.Equal(t, []any{"x 1", "y 1"}, dials(t, g, now), "one permit each")
	g.Opened(x1)
	require.Equal(t, []any{"x 2"}, dials(t, g, now))
	for _, s := range []*Session{x1, x2, y1} {
		g.Lost(s)
	}
	g.SetLimits(srv, 0, 2)
	queue(x1, x2, y1, y2)
	require.Equal(t, []any{"x 1", "y 1", "x 2", "y 2"}, dials(t, g, now), "two permits each")
}

// A tenant at its quota, and a server at its own, evict one of theirs, and nobody's else.
func TestWhoIsEvictedForWhom(t *testing.T) {
	now := time.Unix(1, 0)
	for name, c := range map[string]struct {
		all, server, tenant int
		want                any
		reason              messages.EvictReason
	}{
		"the cap":           {4, 0, 0, "b", messages.EvictCap},
		"that of a server":  {0, 2, 0, "a of another", messages.EvictServerCap},
		"that of a tenant":  {0, 0, 2, "a", messages.EvictTenantQuota},
		"all, tenant first": {4, 2, 2, "a", messages.EvictTenantQuota},
	} {
		t.Run(name, func(t *testing.T) {
			g := New(Config{MaxSessions: c.all})
			a, b := g.NewServer("a", "a", false), g.NewServer("b", "b", false)
			g.SetLimits(a, c.server, 9)
			g.SetLimits(b, 0, 9)
			mine, others := new(Tenant), new(Tenant)
			mine.SetLimit(c.tenant)
			others.SetLimit(c.tenant)
			for _, s := range []*Session{wait(g, "b", b, others, now), wait(g, "a of another", a, others, now), wait(g, "a", a, mine, now), wait(g, "b of mine", b, mine, now)} {
				dials(t, g, now)
				g.Opened(s)
				g.Use(s, true)
			}
			wait(g, "new", a, mine, now)
			d, _ := g.Next(now)
			require.Equal(t, Decision{Do: Evict, Session: d.Session, Reason: c.reason}, d)
			require.Equal(t, c.want, d.Session.Of)
			g.Drain(d.Session)
			require.Empty(t, dials(t, g, now), "it waits for the slot")
			g.Leave(d.Session)
			require.Equal(t, []any{"new"}, dials(t, g, now))
		})
	}
}

// A process that starts without a permit, because it takes over a connection, takes no slot from a session of
// another server that waits.
func TestEvictionsWhileMoreProcessesStartThanMay(t *testing.T) {
	now := time.Unix(1, 0)
	g := New(Config{MaxSessions: 3, MaxStarts: 1})
	processes, other := g.NewServer("processes", "command", true), g.NewServer("other", "o", false)
	g.SetLimits(processes, 0, 9)
	g.SetLimits(other, 0, 9)
	victim, first := wait(g, "victim", other, nil, now), wait(g, "first", processes, nil, now)
	dials(t, g, now)
	g.Opened(victim)
	g.Use(victim, true)
	g.Opened(first)
	g.WantControl(first, now, nil)
	g.Next(now)
	wait(g, "second", processes, nil, now)
	dials(t, g, now)
	g.Lost(first)
	g.Want(first, now)
	require.Equal(t, []any{"first"}, dials(t, g, now), "it takes over the connection of its control")
	wait(g, "third", processes, nil, now)
	wait(g, "waits", other, nil, now)
	d, _ := g.Next(now)
	require.Equal(t, Decision{Do: Evict, Session: victim, Reason: messages.EvictCap}, d)
}
