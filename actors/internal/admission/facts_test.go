package admission

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// Each test here has one fact that a gate is told, or that it finds out, and without which a session would wait in
// vain, be evicted for nothing, or leave something behind.

var absent = &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Absent, Detail: "refused"}

// gateOf returns a gate with one server.
func gateOf(cfg Config, maxDials int) (*Gate, *Server) {
	cfg.Random = rand.Float64
	g := New(cfg)
	srv := g.NewServer("a", "a", false)
	g.SetLimits(srv, 0, maxDials)
	return g, srv
}

// opened returns a session that is open.
func opened(t *testing.T, g *Gate, name any, srv *Server, tenant *Tenant, idle bool, now time.Time) *Session {
	t.Helper()
	s := wait(g, name, srv, tenant, now)
	require.Equal(t, []any{name}, dials(t, g, now))
	g.Opened(s)
	g.Use(s, idle)
	return s
}

// controlled returns a gate with one slot, which a session has, and its control uses.
func controlled(t *testing.T, now time.Time) (*Gate, *Server, *Session, *Control) {
	t.Helper()
	g, srv := gateOf(Config{MaxSessions: 1}, 9)
	s := opened(t, g, "s", srv, nil, false, now)
	k := g.WantControl(s, now, nil)
	g.Next(now)
	return g, srv, s, k
}

// fails ends a dial that has found no server.
func fails(g *Gate, s *Session, now time.Time) {
	g.Lost(s)
	g.Failed(s, absent, now)
}

func decides(t *testing.T, g *Gate, now time.Time, do Do, s *Session) {
	t.Helper()
	d, _ := g.Next(now)
	require.Equal(t, do, d.Do)
	require.Same(t, s, d.Session)
}

func decidesNothing(t *testing.T, g *Gate, now time.Time) {
	t.Helper()
	_, found := g.Next(now)
	require.False(t, found)
}

func TestATenantWithoutAnyoneToEvictWaitsForOne(t *testing.T) {
	now := time.Unix(1, 0)
	g, srv := gateOf(Config{}, 9)
	tenant := new(Tenant)
	tenant.SetLimit(1)
	first := wait(g, "first", srv, tenant, now)
	dials(t, g, now)
	wait(g, "second", srv, tenant, now)
	decidesNothing(t, g, now)
	g.Opened(first)
	decides(t, g, now, Evict, first)
}

func TestANewSessionOfATenantIsLookedAtWithThoseThatWait(t *testing.T) {
	now := time.Unix(1, 0)
	g, srv := gateOf(Config{}, 9)
	tenant := new(Tenant)
	tenant.SetLimit(2)
	one, two := opened(t, g, "one", srv, tenant, true, now), opened(t, g, "two", srv, tenant, true, now)
	wait(g, "third", srv, tenant, now)
	decides(t, g, now, Evict, one)
	g.Drain(one)
	decidesNothing(t, g, now)
	wait(g, "fourth", srv, tenant, now)
	decides(t, g, now, Evict, two)
}

func TestOneSlotOfATenantIsNotCountedForTwoPlaces(t *testing.T) {
	now := time.Unix(1, 0)
	g := New(Config{MaxSessions: 2})
	srv, tenant := g.NewServer("a", "", false), new(Tenant)
	g.SetLimits(srv, 0, 9)
	tenant.SetLimit(1)
	waiting := atPlaces(t, g, srv, tenant, 2, now)
	one := opened(t, g, "one", srv, nil, true, now)
	opened(t, g, "two", srv, nil, true, now)
	for _, s := range waiting {
		g.Want(s, now)
	}
	decides(t, g, now, Evict, one)
	g.Drain(one)
	decidesNothing(t, g, now)
}

func TestASessionThatHasLostItsConnectionIsNotEvictedWhileItHasCalls(t *testing.T) {
	now := time.Unix(1, 0)
	g, srv := gateOf(Config{MaxSessions: 1}, 9)
	s := opened(t, g, "s", srv, nil, false, now)
	g.Lost(s)
	wait(g, "other", srv, nil, now)
	decidesNothing(t, g, now)
	g.Use(s, true)
	decides(t, g, now, Evict, s)
}

func TestSlotsOfPinnedSessionsAreCounted(t *testing.T) {
	now := time.Unix(1, 0)
	g, srv := gateOf(Config{MaxSessions: 2}, 9)
	s := opened(t, g, "s", srv, nil, true, now)
	g.Pin(s, true)
	require.Equal(t, [2]int{1, 1}, [2]int{g.Sessions.Pins, g.Sessions.PinnedSlots})
	g.Lost(s)
	g.Rest(s)
	require.Equal(t, [2]int{1, 0}, [2]int{g.Sessions.Pins, g.Sessions.PinnedSlots})
	g.Leave(s)
	require.Equal(t, [2]int{0, 0}, [2]int{g.Sessions.Pins, g.Sessions.PinnedSlots})
}

func TestALoweredQuotaEvictsIdleSessionsAndOthersOnceTheyAreIdle(t *testing.T) {
	now := time.Unix(1, 0)
	g, srv := gateOf(Config{}, 9)
	idle, busy := opened(t, g, "idle", srv, nil, true, now), opened(t, g, "busy", srv, nil, false, now)
	pinned := opened(t, g, "pinned", srv, nil, true, now)
	opened(t, g, "last", srv, nil, false, now)
	g.Pin(pinned, true)
	g.SetLimits(srv, 1, 9)
	for _, s := range []*Session{idle, busy, pinned} {
		switch s {
		case busy:
			g.Use(busy, true)
		case pinned:
			g.Pin(pinned, false)
		}
		decides(t, g, now, Evict, s)
		g.Drain(s)
		decidesNothing(t, g, now)
	}
}

func TestTheSessionWithoutASlotThatIsGivenUpIsOfTheSameTenant(t *testing.T) {
	now := time.Unix(1, 0)
	g, srv := gateOf(Config{MaxWithoutSlot: 2}, 9)
	mine, others := new(Tenant), new(Tenant)
	mine.SetLimit(9)
	others.SetLimit(9)
	var before *Session
	for i, tenant := range []*Tenant{others, mine, mine} {
		s := opened(t, g, i, srv, tenant, true, now)
		g.Lost(s)
		g.Idle(s)
		if i == 2 {
			decides(t, g, now, Evict, before)
			g.Drain(before)
		}
		before = s
		decidesNothing(t, g, now)
	}
}

func TestTheSlotThatOnlyAControlUsesIsFreeWhenThatHasEnded(t *testing.T) {
	now := time.Unix(1, 0)
	g, srv, s, k := controlled(t, now)
	g.Pin(s, true) // else it is evicted
	g.Lost(s)
	g.Rest(s)
	wait(g, "other", srv, nil, now)
	decidesNothing(t, g, now)
	g.ControlEnded(k)
	require.Equal(t, []any{"other"}, dials(t, g, now))
}

func TestASessionThatLeavesKeepsItsSlotUntilItsControlHasEnded(t *testing.T) {
	now := time.Unix(1, 0)
	g, srv, s, k := controlled(t, now)
	g.ControlOpened(k)
	g.Lost(s)
	g.Leave(s)
	wait(g, "other", srv, nil, now)
	decidesNothing(t, g, now)
	g.ControlEnded(k)
	require.Equal(t, []any{"other"}, dials(t, g, now))
}

func TestAControlGetsTheNextPermit(t *testing.T) {
	now := time.Unix(1, 0)
	g, srv := gateOf(Config{}, 1)
	s := opened(t, g, "s", srv, nil, false, now)
	dialing := wait(g, "dialing", srv, nil, now)
	dials(t, g, now)
	wait(g, "waits", srv, nil, now)
	k := g.WantControl(s, now, nil)
	decidesNothing(t, g, now)
	g.Opened(dialing)
	d, _ := g.Next(now)
	require.Equal(t, Decision{Do: AllowControl, Control: k}, d)
	decidesNothing(t, g, now)
	g.ControlOpened(k)
	require.Equal(t, []any{"waits"}, dials(t, g, now))
}

func TestWhoComesWhileTheServerIsDownProbesSoonIfNobodyWaits(t *testing.T) {
	now := time.Unix(1, 0)
	for _, failFast := range []bool{false, true} {
		g, srv := gateOf(Config{FailFast: failFast}, 1)
		s := wait(g, "s", srv, nil, now)
		dials(t, g, now)
		fails(g, s, now)
		g.Want(s, now)
		decidesNothing(t, g, now)
		require.False(t, g.Wake().IsZero())
		g.Leave(s)
		require.True(t, g.Wake().IsZero(), "nobody waits")
		srv.Home.Endpoint.Next = now.Add(time.Hour)
		other := wait(g, "other", srv, nil, now)
		decidesNothing(t, g, now)
		if failFast {
			require.Equal(t, now.Add(time.Hour), g.Wake())
			continue
		}
		require.Equal(t, now.Add(MinProbeInterval), g.Wake())
		g.Due(g.Wake())
		decides(t, g, now.Add(MinProbeInterval), Dial, other)
		require.True(t, other.Probing)
	}
}

func TestWhoHasNotProbedYetProbesNext(t *testing.T) {
	now := time.Unix(1, 0)
	g, srv := gateOf(Config{}, 1)
	var sessions []*Session
	for _, name := range []string{"one", "two"} {
		sessions = append(sessions, wait(g, name, srv, nil, now))
	}
	dials(t, g, now)
	fails(g, sessions[0], now)
	g.Want(sessions[0], now)
	for _, next := range []int{0, 1, 0} { // the first one's dial was no probe
		decidesNothing(t, g, now)
		now = g.Wake()
		g.Due(now)
		decides(t, g, now, Dial, sessions[next])
		fails(g, sessions[next], now)
		g.Want(sessions[next], now)
	}
	decidesNothing(t, g, now)
	g.Idle(sessions[1]) // it begins anew with its next call
	g.Want(sessions[1], now)
	decidesNothing(t, g, now)
	now = g.Wake()
	g.Due(now)
	decides(t, g, now, Dial, sessions[1])
}

// probing returns a gate whose server is down, and some sessions that probe it, the oldest first.
func probing(t *testing.T, count int) (g *Gate, srv *Server, probes []*Session, now time.Time) {
	now = time.Unix(1, 0)
	g, srv = gateOf(Config{}, 9)
	first := wait(g, "first", srv, nil, now)
	dials(t, g, now)
	fails(g, first, now)
	for i := range count + 1 {
		wait(g, i, srv, nil, now)
	}
	for range count {
		decidesNothing(t, g, now)
		now = g.Wake()
		g.Due(now)
		d, _ := g.Next(now)
		require.Equal(t, Dial, d.Do)
		require.True(t, d.Session.Probing)
	}
	decidesNothing(t, g, now)
	return g, srv, srv.Home.Endpoint.Probes, now
}

func TestTheSecondOldestProbeIsAbandonedForTheNext(t *testing.T) {
	g, _, probes, _ := probing(t, MaxProbes)
	now := g.Wake()
	second := probes[1]
	g.Due(now)
	decides(t, g, now, Abandon, second)
	decidesNothing(t, g, now)
	g.Abandoned(second, now)
	d, _ := g.Next(now)
	require.Equal(t, Dial, d.Do, "the next one probes at once")
}

func TestTheAnswerOfAServerAbandonsOtherProbesAndLetsAllDial(t *testing.T) {
	g, srv, probes, now := probing(t, 2)
	one, two := probes[0], probes[1]
	g.Started(one)
	g.Up(one, now)
	decides(t, g, now, Abandon, two)
	d, _ := g.Next(now)
	require.Equal(t, Dial, d.Do)
	require.False(t, d.Session.Probing)
	require.True(t, g.Wake().IsZero())
	require.Empty(t, srv.Home.Endpoint.Probes)
}

func TestAForgottenServerIsDialedAtOnce(t *testing.T) {
	g, srv, probes, now := probing(t, 1)
	probe := probes[0]
	g.Forget(srv.Home)
	decides(t, g, now, Abandon, probe)
	d, _ := g.Next(now)
	require.Equal(t, Dial, d.Do)
	require.False(t, d.Session.Probing)
	require.True(t, g.Wake().IsZero(), "no probe is due")
}

func TestAProbeThatMovesAwayLetsTheNextOneBegin(t *testing.T) {
	g, _, probes, now := probing(t, 1)
	require.True(t, g.Move(probes[0], "elsewhere", now))
	d, _ := g.Next(now)
	require.Equal(t, Dial, d.Do)
	require.True(t, d.Session.Probing)
}

func TestAPlaceThatNobodyIsAtIsNotShown(t *testing.T) {
	now := time.Unix(1, 0)
	g := New(Config{Random: rand.Float64})
	srv := g.NewServer("a", "", false)
	g.SetLimits(srv, 0, 9)
	s := wait(g, "s", srv, nil, now)
	dials(t, g, now)
	require.True(t, g.Move(s, "place", now))
	fails(g, s, now)
	require.Equal(t, 1, srv.Down())
	require.Same(t, s.Place.Endpoint, srv.Foremost())
	g.Up(s, now)
	require.Zero(t, srv.Down())
	require.Same(t, s.Place.Endpoint, srv.Foremost())
	g.Leave(s)
	require.Same(t, srv.Home.Endpoint, srv.Foremost())
}

func TestTheNextProbeDoesNotFollowACleanupAtOnce(t *testing.T) {
	now := time.Unix(1, 0)
	g, srv := gateOf(Config{}, 9)
	first := wait(g, "first", srv, nil, now)
	dials(t, g, now)
	fails(g, first, now)
	cleanup := &Session{Of: "cleanup", Cleanup: true, Draining: true}
	g.Join(cleanup, srv, nil)
	now = now.Add(time.Second)
	g.Want(cleanup, now)
	g.Want(first, now)
	decides(t, g, now, Dial, first)
	g.Lost(first)
	g.Unknown(first)
	g.Rest(first)
	now = now.Add(time.Second)
	decides(t, g, now, Dial, cleanup)
	require.False(t, cleanup.Probing)
	g.Want(first, now)
	decidesNothing(t, g, now)
	require.Equal(t, now.Add(MinProbeInterval), g.Wake())
	g.Leave(cleanup)
	g.Due(g.Wake())
	decides(t, g, now.Add(MinProbeInterval), Dial, first)
}

func TestTheSlotOfASessionThatDrainsIsInUseUntilItLeaves(t *testing.T) {
	now := time.Unix(1, 0)
	g, srv, s, k := controlled(t, now)
	g.Lost(s)
	g.Rest(s)
	g.Drain(s)
	g.ControlEnded(k)
	wait(g, "other", srv, nil, now)
	decidesNothing(t, g, now)
	g.Leave(s)
	require.Equal(t, []any{"other"}, dials(t, g, now))
}
