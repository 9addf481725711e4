package admission

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// atPlaces returns sessions of a server, each of which has dialed at a place of its own, and rests there.
func atPlaces(t *testing.T, g *Gate, srv *Server, tenant *Tenant, count int, now time.Time) (sessions []*Session) {
	for i := range count {
		s := wait(g, i, srv, tenant, now)
		dials(t, g, now)
		require.True(t, g.Move(s, fmt.Sprint("place-", i), now))
		g.Lost(s)
		g.Rest(s)
		sessions = append(sessions, s)
	}
	return sessions
}

// steps takes the decisions of a gate. It returns how many steps it takes, and how many sessions may dial.
func steps(t *testing.T, g *Gate, now time.Time, afterEach func()) (steps, dials int) {
	for range 1000 {
		d, found := g.Next(now)
		afterEach()
		switch {
		case !found:
			return steps, dials
		case d.Do == Continue:
			steps++
		case d.Do == Dial:
			dials++
		}
	}
	require.Fail(t, "no end")
	return steps, dials
}

// H-D8: a slot that a tenant gets back is not offered to all places where its sessions wait.
func TestNoStepGrowsWithThePlacesWhereATenantWaits(t *testing.T) {
	now := time.Unix(1, 0)
	g := New(Config{Random: rand.Float64})
	srv, tenant := g.NewServer("a", "", false), new(Tenant)
	g.SetLimits(srv, 0, 9)
	tenant.SetLimit(1)
	sessions := atPlaces(t, g, srv, tenant, 1000, now)
	holder := wait(g, "holder", srv, tenant, now)
	require.Equal(t, []any{"holder"}, dials(t, g, now))
	for _, s := range sessions {
		g.Want(s, now)
	}
	stuck := 0
	most := func() {
		require.LessOrEqual(t, tenant.stuck.Count-stuck, maxSkipped)
		require.LessOrEqual(t, stuck-tenant.stuck.Count, maxSkipped)
		stuck = tenant.stuck.Count
	}
	n, dialed := steps(t, g, now, most)
	require.Equal(t, 1000, tenant.stuck.Count)
	require.Zero(t, dialed)
	require.GreaterOrEqual(t, n, 1000/maxSkipped)
	g.Leave(holder)
	most()
	n, dialed = steps(t, g, now, most)
	require.Equal(t, 1, dialed)
	require.LessOrEqual(t, n, 2, "the other places are not looked at")
	for done := 1; done < 1000; done++ { // each of the others has its turn
		for _, s := range sessions {
			if s.Dialing {
				g.Leave(s)
				break
			}
		}
		_, dialed = steps(t, g, now, most)
		require.Equal(t, 1, dialed)
	}
}

// A slot is not kept for those places of a tenant whose turn cannot come.
func TestASlotOfATenantGoesToAPlaceThatHasAPermit(t *testing.T) {
	now := time.Unix(1, 0)
	g := New(Config{Random: rand.Float64})
	srv, tenant := g.NewServer("a", "", false), new(Tenant)
	g.SetLimits(srv, 0, 1)
	tenant.SetLimit(1)
	sessions := atPlaces(t, g, srv, tenant, 3*maxSkipped, now)
	holder := wait(g, "holder", srv, tenant, now)
	dials(t, g, now)
	for _, s := range sessions {
		g.Want(s, now)
	}
	steps(t, g, now, func() {})
	require.Equal(t, len(sessions), tenant.stuck.Count)
	last := sessions[len(sessions)-1]
	for _, s := range sessions { // the servers of the others go down
		if s != last {
			s.Place.Endpoint.Failed(&mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Absent}, now, false, now, g.cfg.Random)
		}
	}
	g.Leave(holder)
	_, dialed := steps(t, g, now, func() {})
	require.Equal(t, 1, dialed)
	require.True(t, last.Dialing)
}

// H-D8: what is due at many places, or may have changed there, is looked at in steps.
func TestNoStepGrowsWithThePlacesThatAreDue(t *testing.T) {
	now := time.Unix(1, 0)
	g := New(Config{Random: rand.Float64})
	srv := g.NewServer("a", "", false)
	g.SetLimits(srv, 0, 9)
	sessions := atPlaces(t, g, srv, nil, 1000, now)
	for _, s := range sessions {
		g.Failed(s, &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Absent}, now)
		g.Want(s, now)
	}
	steps(t, g, now, func() {})
	require.Zero(t, srv.Waiting(), "all places are down")
	g.SetLimits(srv, 0, 8)
	before := srv.Waiting()
	n, _ := steps(t, g, now, func() {
		require.LessOrEqual(t, before-srv.Waiting(), maxSkipped)
		before = srv.Waiting()
	})
	require.GreaterOrEqual(t, n, 1000/maxSkipped)
	require.Zero(t, srv.Waiting())

	now = now.Add(time.Hour)
	probes := 0
	for !g.Wake().IsZero() && !g.Wake().After(now) {
		g.Due(now)
		require.LessOrEqual(t, srv.Waiting(), maxSkipped)
		_, dialed := steps(t, g, now, func() {})
		probes += dialed
	}
	require.Equal(t, 1000, probes)
}

// A decision that has waited until it is not right any more would cost a permit.
func TestTheDialThatGoesOnAtOnceIsDecidedFirst(t *testing.T) {
	now := time.Unix(1, 0)
	g := New(Config{Random: rand.Float64})
	srv := g.NewServer("a", "a", false)
	g.SetLimits(srv, 0, 1)
	s := wait(g, "s", srv, nil, now)
	dials(t, g, now)
	for range 9 {
		g.WantControl(s, now, nil)
	}
	g.Opened(s)
	g.SetLimits(srv, 0, 100)
	g.Lost(s)
	g.Want(s, now)
	d, _ := g.Next(now)
	require.Equal(t, Dial, d.Do)
}
