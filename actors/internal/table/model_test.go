package table

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// model is what a table must know, kept in the simplest way.
type model struct {
	*rand.Rand
	*testing.T
	table       *Table
	all         []*session // in the order of spawning
	generations map[messages.Key]uint64
	visits      []*visit
}

// session is a session of the model.
type session struct {
	*Registration
	state   messages.State
	since   int // the step in which it got its state
	calls   int
	unheard bool
}

// visit is a cursor, and those that it must still visit.
type visit struct {
	Cursor
	left []*Registration
}

// inFlight is how many calls a session runs at once.
const inFlight = 2

// waiting returns how many calls of a session wait.
func (s *session) waiting() int {
	switch {
	case s.state == messages.StateDraining:
		return 0
	case s.state == messages.StateReady && !s.unheard:
		return max(0, s.calls-inFlight)
	}
	return s.calls
}

// act takes a random step.
func (m *model) act(step int) {
	key := messages.Key{Server: fmt.Sprint("server-", m.IntN(3)), Scope: fmt.Sprint("scope-", m.IntN(3))}
	if m.IntN(3) == 0 && m.table.Current(key) == nil {
		s := &session{Registration: &Registration{Key: key, PID: &actor.PID{Id: fmt.Sprint(step)}, Server: m.table.Servers[key.Server]}, state: messages.StateWaiting, since: step}
		e := m.table.Ensure(key)
		m.table.JoinTenant(s.Registration)
		m.table.Add(s.Registration)
		m.table.SetState(s.Registration, s.state)
		e.Current = s.Registration
		m.all = append(m.all, s)
		return
	}
	if len(m.all) == 0 {
		return
	}
	s := m.all[m.IntN(len(m.all))]
	switch to := protocol.States[1+m.IntN(len(protocol.States)-1)]; m.IntN(8) {
	case 0:
		if s.Draining {
			m.remove(s)
		}
	case 1:
		if !s.Draining {
			s.Draining = true // by the gate
			m.setState(s, messages.StateDraining, step)
			m.table.TakeOutOfUse(s.Registration)
		}
	case 2:
		if !s.Draining && to != messages.StateDraining {
			m.setState(s, to, step)
		}
	case 3:
		s.unheard = m.IntN(2) == 0
		cause := &mcpbridge.Error{}
		if !s.unheard {
			cause = nil
		}
		m.table.SetUnheard(s.Registration, cause)
	case 4:
		n := m.IntN(s.calls + 1)
		s.calls -= n
		m.table.Gave(s.Registration, n)
	case 5:
		m.generations[s.Key]++
		m.table.Opened(s.Registration, m.generations[s.Key], dial.Info{})
	case 6:
		v := &visit{Cursor: m.table.Cursor(func(server string) bool { return server != s.Key.Server })}
		for _, other := range m.all {
			if other.Key.Server != s.Key.Server {
				v.left = append(v.left, other.Registration)
			}
		}
		m.visits = append(m.visits, v)
	default:
		s.calls++
		m.table.Took(s.Registration, false)
	}
}

// setState sets the state of a session.
func (m *model) setState(s *session, to messages.State, step int) {
	if s.unheard = false; s.state != to {
		s.state, s.since = to, step
	}
	m.table.SetState(s.Registration, to)
}

// remove removes a session.
func (m *model) remove(s *session) {
	m.all = slices.DeleteFunc(m.all, func(other *session) bool { return other == s })
	for _, v := range m.visits {
		v.left = slices.DeleteFunc(v.left, func(reg *Registration) bool { return reg == s.Registration })
	}
	waited := m.table.Remove(s.Registration)
	require.ElementsMatch(m, m.of(func(other *session) bool { return other.Key == s.Key }), waited)
	m.table.Gave(s.Registration, s.calls) // which comes late
}

// of returns the sessions that match.
func (m *model) of(match func(s *session) bool) (all []*Registration) {
	for _, s := range m.all {
		if match(s) {
			all = append(all, s.Registration)
		}
	}
	return all
}

// check compares the table with the model.
func (m *model) check() {
	keys, tenants := map[messages.Key]bool{}, map[string]int{}
	loads := map[string]messages.Load{}
	waiting := 0
	for _, s := range m.all {
		keys[s.Key] = true
		tenants[s.Key.Scope] += s.waiting()
		waiting += s.waiting()
		load := loads[s.Key.Server]
		load.Waiting += s.waiting()
		load.InFlight += s.calls - s.waiting()
		loads[s.Key.Server] = load
		require.Equal(m, s.state, s.State())
		require.Equal(m, s.calls, s.Outstanding)
		require.Same(m, s.Registration, m.table.WithPID(s.PID))
		require.Equal(m, s.Draining, m.table.Current(s.Key) != s.Registration)
	}
	require.Equal(m, len(m.all), m.table.Sessions())
	require.Equal(m, len(keys), m.table.Keys())
	require.Equal(m, waiting, m.table.Waiting)
	for name, of := range m.table.Tenants.All() {
		require.Equal(m, tenants[name], of.Waiting())
		delete(tenants, name)
	}
	require.Empty(m, tenants)
	for name := range m.table.Servers {
		snap := messages.ServerSnapshot{Name: name}
		m.table.Describe(&snap)
		require.Equal(m, loads[name], snap.Load)
		require.Equal(m, len(m.of(func(s *session) bool { return s.Key.Server == name })), snap.Sessions)
	}
	for key, generation := range m.generations {
		of := m.table.Generations.Of(key)
		if e := m.table.Entry(key); e != nil {
			of = e.Generation
		}
		require.Equal(m, generation, of)
	}
	m.checkMatching(Filter{})
	server, scope, state := fmt.Sprint("server-", m.IntN(3)), fmt.Sprint("scope-", m.IntN(3)), protocol.States[1+m.IntN(len(protocol.States)-1)]
	m.checkMatching(Filter{Server: server})
	m.checkMatching(Filter{Server: server, State: state})
	m.checkMatching(Filter{State: state})
	m.checkMatching(Filter{Scope: scope, State: state})
	m.checkMatching(Filter{Scope: scope, Server: server})
}

// checkMatching compares what a filter selects. Without a scope, the order matters, too.
func (m *model) checkMatching(f Filter) {
	want := slices.DeleteFunc(slices.Clone(m.all), func(s *session) bool {
		return f.Server != "" && s.Key.Server != f.Server || f.Scope != "" && s.Key.Scope != f.Scope || f.State != "" && s.state != f.State
	})
	counts, all := m.table.Matching(f)
	got := slices.Collect(all)
	var regs []*Registration
	total := map[messages.State]int{}
	for _, s := range want {
		total[s.state]++
		regs = append(regs, s.Registration)
	}
	require.Equal(m, total, counts)
	require.ElementsMatch(m, regs, got)
	if f.Scope == "" {
		require.True(m, slices.IsSortedFunc(got, func(a, b *Registration) int {
			return slices.Compare(m.place(a), m.place(b))
		}), "%+v", f)
	}
}

// place returns what the sessions of a listing are ordered by.
func (m *model) place(reg *Registration) []string {
	s := m.all[slices.IndexFunc(m.all, func(s *session) bool { return s.Registration == reg })]
	return []string{fmt.Sprint(slices.Index(protocol.States[:], s.state)), reg.Key.Server, fmt.Sprintf("%04d", s.since)}
}

// Whatever becomes of sessions, the table knows what a naive model knows, and a cursor visits each session that there was
// when it was made, and is there yet, once.
func TestTableKnowsWhatANaiveModelKnows(t *testing.T) {
	for seed := range uint64(10) {
		m := &model{Rand: rand.New(rand.NewPCG(seed, 0)), T: t, generations: map[messages.Key]uint64{}}
		m.table = New(nil, Tenants{NameOf: func(key messages.Key) string { return key.Scope }, MaxSessions: 3})
		for i := range 3 {
			m.table.Servers[fmt.Sprint("server-", i)] = &Server{Resolved: &mcpbridge.Limits{MaxInFlight: inFlight}}
		}
		for step := range 200 {
			m.act(step)
			m.check()
		}
		for _, v := range m.visits {
			visited := []*Registration{}
			for v.Step(func(reg *Registration) { visited = append(visited, reg) }) {
			}
			require.ElementsMatch(t, v.left, visited, "seed %d", seed)
		}
		for len(m.all) > 0 {
			s := m.all[0]
			if !s.Draining {
				m.table.TakeOutOfUse(s.Registration)
			}
			m.remove(s)
		}
		require.Zero(t, m.table.Sessions()+m.table.Keys()+m.table.Waiting+len(maps.Collect(m.table.Tenants.All())))
	}
}
