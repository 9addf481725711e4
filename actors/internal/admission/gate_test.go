package admission

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// world is what a gate is told, and what a model knows of it: counts, without turns and quotas of its own.
type world struct {
	t        *testing.T
	gate     *Gate
	now      time.Time
	rand     *rand.Rand
	servers  []*Server
	tenants  []*Tenant
	sessions []*Session
	controls []*Control
	opened   map[*Session]bool
	busy     map[*Session]bool
	wants    map[*Session]bool
	rests    map[*Session]bool // until its backoff is over
	keeps    map[*Session]bool // the slot that it had
	adopts   map[*Session]bool // the connection of its second session, without a permit
}

const (
	worldSlots  = 6
	serverSlots = 4
	tenantSlots = 2
	worldDials  = 2
	worldStarts = 6
	worldYoung  = 2

	worldWithoutSlot = 5
)

// addresses are those of the servers. The third one leads its sessions to others.
var addresses = []string{"a", "a", "", "command", "command 2", "command 3"}

func (w *world) newServer(i int) *Server {
	srv := w.gate.NewServer(fmt.Sprint(i), addresses[i], strings.HasPrefix(addresses[i], "command"))
	w.gate.SetLimits(srv, serverSlots, worldDials)
	return srv
}

func newWorld(t *testing.T, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 0))
	w := &world{
		t: t, now: time.Unix(1, 0), rand: r,
		gate: New(Config{
			MaxSessions: worldSlots, MaxStarts: worldStarts, MaxWithoutSlot: worldWithoutSlot, FailFast: seed%4 == 3, Random: r.Float64,
		}),
		opened: map[*Session]bool{}, busy: map[*Session]bool{}, wants: map[*Session]bool{}, rests: map[*Session]bool{},
		keeps: map[*Session]bool{}, adopts: map[*Session]bool{},
	}
	for i := range addresses {
		w.servers = append(w.servers, w.newServer(i))
	}
	for range 2 {
		t := new(Tenant)
		t.SetLimit(tenantSlots)
		w.tenants = append(w.tenants, t)
	}
	return w
}

// any returns one of some sessions, or nil.
func (w *world) any(of func(*Session) bool) *Session {
	var found []*Session
	for _, s := range w.sessions {
		if of(s) {
			found = append(found, s)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return found[w.rand.IntN(len(found))]
}

// settle takes all decisions, and does what a registry does then.
func (w *world) settle() {
	for range 1000 {
		d, found := w.gate.Next(w.now)
		w.check()
		if !found {
			w.checkNothingWaitsInVain()
			return
		}
		switch d.Do {
		case Dial:
			require.True(w.t, w.wants[d.Session], "it wanted to dial")
			delete(w.wants, d.Session)
			w.checkDial(d.Session)
		case Evict:
			w.checkEvict(d)
			w.drain(d.Session)
		case Abandon:
			if d.Session.Dialing {
				w.gate.Abandoned(d.Session, w.now)
				w.want(d.Session)
			}
		case AllowControl:
			require.True(w.t, d.Control.allowed || d.Control.ended)
		}
	}
	require.Fail(w.t, "the gate decides without end")
}

// drain drains a session.
func (w *world) drain(s *Session) {
	delete(w.wants, s)
	delete(w.rests, s)
	w.gate.Drain(s)
}

// checkDial checks that a session may dial.
func (w *world) checkDial(s *Session) {
	require.True(w.t, s.Dialing && s.Held)
	for _, q := range s.quotas {
		if q.of != nil && !w.keeps[s] {
			require.LessOrEqual(w.t, q.of.Open, q.of.Limit)
		}
	}
	if !w.adopts[s] {
		require.LessOrEqual(w.t, s.Place.dialing, s.Place.server.maxDials)
		if s.Place.server.starts != nil {
			require.GreaterOrEqual(w.t, w.mayStart(s), 0)
		}
	}
}

// mayStart returns how many more processes of the server of a session may start, besides those that start. It counts
// them itself.
func (w *world) mayStart(s *Session) int {
	all, young, down, own := 0, 0, 0, 0
	for _, other := range w.sessions {
		if other.start == nil {
			continue
		}
		all++
		own += count(other.Place.server == s.Place.server)
		young += count(w.now.Before(other.DialedAt.Add(youth)))
		down += count(other.start.down)
	}
	part, ep := 0.25, s.Place.server.Home.Endpoint
	if !ep.SeenAt.IsZero() && !ep.Down {
		part = 0.5
	}
	n := min(worldStarts-all, worldYoung-young, int(math.Ceil(part*float64(worldStarts-(all-own))))-own)
	if ep.Down {
		n = min(n, worldStarts/2-down)
	}
	return n
}

// checkEvict checks that a session may be evicted, and for whom.
func (w *world) checkEvict(d Decision) {
	s := d.Session
	require.False(w.t, s.Pinned || s.Draining)
	require.True(w.t, !w.busy[s] || s.Held && (w.opened[s] || s.onlyControls))
	scope := s.quotas[0].of
	switch d.Reason {
	case messages.EvictServerCap:
		scope = s.quotas[1].of
	case messages.EvictTenantQuota:
		scope = s.quotas[2].of
	}
	open, draining, idle, withoutSlot := 0, 0, 0, 0
	waiting := map[*Place]int{}
	for _, other := range w.sessions {
		in := other.quotas[0].of == scope || other.quotas[1].of == scope || other.quotas[2].of == scope
		if in {
			open += count(other.Held)
			draining += count(other.Held && other.Draining)
			idle += count(other.Held && !w.busy[other] && !other.Pinned && !other.Draining)
		}
		withoutSlot += count(!other.Held && !w.busy[other] && !other.Pinned && !other.Draining)
		if !in || !other.Queued() {
			continue
		}
		room := true
		for _, q := range other.quotas {
			room = room && (q.of == nil || q.of == scope || d.Reason != messages.EvictCap || q.of.Room() > 0)
		}
		if room {
			waiting[other.Place]++
		}
	}
	if d.Reason == messages.EvictCap && !s.Held {
		require.Greater(w.t, withoutSlot, worldWithoutSlot)
		return
	}
	require.True(w.t, s.Held)
	require.True(w.t, !w.busy[s] || idle == 0, "idle sessions go first")
	if d.Reason == messages.EvictServerCap && open-draining > scope.Limit && !w.busy[s] {
		return // after a reload
	}
	wanted, starts := 0, 0
	for p, n := range waiting {
		if n = min(n, p.permits(w.now)); p.server.starts != nil {
			starts += n
			continue
		}
		wanted += n
	}
	wanted += min(starts, worldStarts-w.gate.starts.count, worldYoung-w.gate.starts.young)
	require.GreaterOrEqual(w.t, open, scope.Limit, "there was no room")
	require.Greater(w.t, wanted, scope.Limit-(open-draining), "somebody may dial who lacks this slot")
}

// use gives a session calls, or takes them.
func (w *world) use(s *Session, busy bool) {
	w.busy[s] = busy
	w.gate.Use(s, !busy)
}

func (w *world) want(s *Session) {
	delete(w.rests, s)
	if !s.Draining || s.Cleanup {
		w.wants[s] = true
		w.adopts[s] = s.Held && s.controls > 0
		w.gate.Want(s, w.now)
		w.keeps[s] = s.Dialing
	}
}

// check compares what the gate counts with what there is.
func (w *world) check() {
	quotas := map[*Quota][3]int{}
	dials, starts, probes := map[*Place]int{}, 0, map[*Endpoint]int{}
	for _, s := range w.sessions {
		for _, q := range s.quotas {
			if q.of != nil {
				n := quotas[q.of]
				n[0] += count(s.Held)
				n[1] += count(s.Pinned)
				n[2] += count(s.Held && s.Draining)
				quotas[q.of] = n
			}
		}
		dials[s.Place] += count(s.Dialing)
		starts += count(s.start != nil)
		probes[s.Place.Endpoint] += count(s.Dialing && s.Probing)
		require.False(w.t, s.Queued() && (s.Dialing || s.Held), "a session that waits needs a slot")
	}
	for _, k := range w.controls {
		dials[k.place] += count(k.dialing)
	}
	for q, n := range quotas {
		require.Equal(w.t, n, [3]int{q.Open, q.Pins, q.draining})
	}
	for p, n := range dials {
		require.Equal(w.t, n, p.dialing)
	}
	for ep, n := range probes {
		if ep.Down {
			require.LessOrEqual(w.t, n, MaxProbes)
		}
	}
	require.Equal(w.t, starts, w.gate.starts.count)
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// checkNothingWaitsInVain looks for sessions that could dial, and were not let: without turns, so that it finds
// what a turn forgets.
func (w *world) checkNothingWaitsInVain() {
	for _, s := range w.sessions {
		if !s.Queued() {
			continue
		}
		room, evictable := true, true
		for _, q := range s.quotas {
			if q.of == nil || q.of.Room() > 0 {
				continue
			}
			room = false
			victim, _ := q.of.victim(q.of.draining + 1)
			evictable = evictable && victim != nil && q.of.draining == 0
		}
		ep := s.Place.Endpoint
		switch {
		case s.Place.server.starts != nil && w.mayStart(s) <= 0:
			require.False(w.t, w.gate.starts.young > 0 && w.gate.Wake().IsZero(), "the end of the youth of a start has a time")
			continue
		case s.Place.permits(w.now) > 0:
		case room && ep.Down && ep.Next.After(w.now):
			require.False(w.t, w.gate.Wake().IsZero() || w.gate.Wake().After(ep.Next), "the next probe has a time")
			continue
		default:
			continue
		}
		require.False(w.t, room, "%v could dial", s.Of)
		require.False(w.t, evictable, "%v could dial if a session was evicted", s.Of)
	}
}

// step tells the gate a fact.
func (w *world) step() {
	g, r := w.gate, w.rand
	dials := func(s *Session) bool { return s.Dialing }
	open := func(s *Session) bool { return w.opened[s] && !s.Draining }
	switch r.IntN(21) {
	case 0, 1, 2:
		s := &Session{Of: len(w.sessions), Cleanup: r.IntN(8) == 0}
		s.Draining = s.Cleanup
		var tenant *Tenant
		if n := r.IntN(len(w.tenants) + 1); n < len(w.tenants) {
			tenant = w.tenants[n]
		}
		g.Join(s, w.servers[r.IntN(len(w.servers))], tenant)
		w.sessions = append(w.sessions, s)
		w.use(s, true)
		w.want(s)
	case 3, 4, 5:
		if s := w.any(dials); s != nil {
			w.opened[s] = true
			g.Opened(s)
			g.Up(s, w.now)
		}
	case 6, 7:
		if s := w.any(dials); s != nil {
			g.Lost(s)
			if r.IntN(2) == 0 {
				g.Failed(s, &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Absent}, w.now)
			} else if s.Probing {
				g.Unknown(s)
			}
			w.settle()
			if r.IntN(3) == 0 && !s.Draining {
				w.rests[s] = true
				g.Rest(s)
			} else {
				w.want(s)
			}
		}
	case 8:
		if s := w.any(dials); s != nil && s.Place.server.Home.address == "" && !g.Move(s, fmt.Sprint("keyed-", r.IntN(3)), w.now) {
			require.False(w.t, s.Dialing)
			g.Lost(s)
			w.want(s)
		}
	case 9:
		if s := w.any(open); s != nil {
			delete(w.opened, s)
			g.Lost(s)
			if w.busy[s] {
				w.want(s)
			} else {
				g.Idle(s)
			}
		}
	case 10, 11:
		if s := w.any(open); s != nil {
			w.use(s, !w.busy[s])
		}
	case 12:
		if s := w.any(func(s *Session) bool { return s.Draining && !s.Dialing && !w.wants[s] }); s != nil {
			w.leave(s)
		} else if s := w.any(func(*Session) bool { return r.IntN(4) == 0 }); s != nil {
			w.leave(s) // other code has stopped it
		}
	case 13:
		if s := w.any(func(s *Session) bool { return !s.Draining }); s != nil {
			w.drain(s)
		}
	case 14:
		if s := w.any(open); s != nil && s.quotas[0].of.Pins < 2 {
			g.Pin(s, !s.Pinned)
		}
	case 15:
		if s := w.any(func(*Session) bool { return true }); s != nil && len(w.controls) < 3 {
			if k := g.WantControl(s, w.now, nil); k != nil {
				w.controls = append(w.controls, k)
			}
		}
	case 16:
		if n := len(w.controls); n > 0 {
			k := w.controls[r.IntN(n)]
			g.ControlOpened(k)
			if r.IntN(2) == 0 {
				w.endControl(k)
			}
		}
	case 17:
		if s := w.any(func(s *Session) bool { return s.Dialing }); s != nil && r.IntN(2) == 0 {
			g.Started(s)
			g.Up(s, w.now)
		} else if s != nil && r.IntN(4) == 0 {
			g.Forget(s.Place)
		}
	case 18:
		if s := w.any(func(s *Session) bool { return w.rests[s] }); s != nil {
			w.want(s)
		}
	case 19:
		g.SetLimits(w.servers[r.IntN(len(w.servers))], r.IntN(serverSlots+1), 1+r.IntN(worldDials))
	case 20:
		if r.IntN(3) == 0 {
			w.reload(r.IntN(len(w.servers)))
		}
	}
	w.pass(time.Duration(r.IntN(2)*r.IntN(600)) * time.Millisecond)
}

// reload changes a server. Its sessions drain, but for those that close leftovers.
func (w *world) reload(i int) {
	before := w.servers[i]
	w.servers[i] = w.newServer(i)
	w.gate.Remove(before)
	for _, s := range w.sessions {
		if s.Place.server == before && !s.Draining {
			w.drain(s)
		}
	}
}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	w.settle()
	w.now = w.now.Add(d)
	if at := w.gate.Wake(); !at.IsZero() && !at.After(w.now) {
		w.gate.Due(w.now)
	}
	w.settle()
}

func (w *world) leave(s *Session) {
	for _, k := range w.controls {
		if k.Of == s {
			w.endControl(k)
		}
	}
	w.gate.Leave(s)
	delete(w.wants, s)
	delete(w.rests, s)
	rest := w.sessions[:0]
	for _, other := range w.sessions {
		if other != s {
			rest = append(rest, other)
		}
	}
	w.sessions = rest
}

func (w *world) endControl(k *Control) {
	w.gate.ControlEnded(k)
	var rest []*Control
	for _, other := range w.controls {
		if other != k {
			rest = append(rest, other)
		}
	}
	w.controls = rest
}

// A gate is told random facts. After each of them its counts are what there is, no bound is exceeded, and no
// session waits that could dial. In the end nothing is left.
func FuzzGate(f *testing.F) {
	for seed := range uint64(100) {
		f.Add(seed)
	}
	f.Fuzz(runWorld)
}

// runWorld tells a gate random facts.
func runWorld(t *testing.T, seed uint64) {
	w := newWorld(t, seed)
	for range 200 {
		w.step()
	}
	rest := 0
	for range 1000 { // the faults are over: all that wait get their turns
		s := w.any(func(s *Session) bool { return s.Dialing })
		switch {
		case s != nil:
			w.opened[s] = true
			w.gate.Opened(s)
			w.gate.Up(s, w.now)
			w.use(s, false)
		case w.any(func(s *Session) bool { return s.Draining && !w.wants[s] }) != nil:
			w.leave(w.any(func(s *Session) bool { return s.Draining && !w.wants[s] }))
		case len(w.controls) > 0:
			w.endControl(w.controls[0])
		default:
			if s := w.any(func(s *Session) bool { return s.Pinned }); s != nil {
				w.gate.Pin(s, false)
			}
			if s := w.any(func(s *Session) bool { return w.rests[s] }); s != nil {
				w.want(s)
			}
			if s := w.any(func(s *Session) bool { return s.Held }); s != nil && w.gate.Wake().IsZero() {
				w.use(s, false)
			}
			if w.pass(time.Second); w.any((*Session).Queued) == nil {
				rest++
			}
		}
		if rest > 2 {
			break
		}
		w.pass(time.Millisecond)
	}
	require.Nil(t, w.any((*Session).Queued), "all had their turn")
	for len(w.sessions) > 0 {
		w.leave(w.sessions[0])
		w.settle()
	}
	require.Zero(t, w.gate.Sessions.Open)
	require.Zero(t, w.gate.queue.servers.Count)
	require.Zero(t, w.gate.starts.count+w.gate.starts.young+w.gate.starts.down)
	require.Empty(t, w.gate.starts.recent)
	require.Zero(t, w.gate.queue.probes.Next())
	require.True(t, w.gate.Wake().IsZero())
	for _, srv := range w.servers {
		require.Empty(t, srv.others)
		require.Empty(t, srv.Home.known)
		require.Equal(t, 1, srv.Home.users)
		w.gate.Remove(srv)
	}
	require.Empty(t, w.gate.endpoints)
}
