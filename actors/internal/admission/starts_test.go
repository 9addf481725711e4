package admission

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// process is what a process does until it answers: it sleeps, or it uses processor time, or neither: then it hangs.
type process struct{ sleeps, burns time.Duration }

// machine is a model of a machine with two processors, which its processes share equally. Its gate has the default.
type machine struct {
	t       *testing.T
	gate    *Gate
	now     time.Time
	running map[*Session]*process
	begun   map[*Session]time.Time // when it was called
	waited  map[string]time.Duration
	took    map[string]time.Duration // from the call to the answer
	longest time.Duration            // from the start of a process to its answer
}

const (
	processors = 2
	tick       = 10 * time.Millisecond
)

func newMachine(t *testing.T) *machine {
	return &machine{
		t: t, gate: New(Config{MaxStarts: 6 * processors, MaxWithoutSlot: 1000, Random: rand.Float64}), now: time.Unix(1, 0),
		running: map[*Session]*process{}, begun: map[*Session]time.Time{}, waited: map[string]time.Duration{}, took: map[string]time.Duration{},
	}
}

// server returns a server whose processes do something.
func (m *machine) server(name string) *Server {
	srv := m.gate.NewServer(name, name, true)
	m.gate.SetLimits(srv, 0, 16)
	return srv
}

// call calls a server by a session of its own, whose process does p.
func (m *machine) call(name string, srv *Server, p process) *Session {
	s := &Session{Of: [2]any{name, p}}
	m.gate.Join(s, srv, nil)
	m.gate.Use(s, false)
	m.begun[s] = m.now
	m.gate.Want(s, m.now)
	return s
}

// start starts the processes that may.
func (m *machine) start() {
	if at := m.gate.Wake(); !at.IsZero() && !at.After(m.now) {
		m.gate.Due(m.now)
	}
	for {
		d, found := m.gate.Next(m.now)
		if !found {
			return
		}
		if d.Do == Dial {
			of := d.Session.Of.([2]any)
			p := of[1].(process)
			m.running[d.Session], m.waited[of[0].(string)] = &p, m.now.Sub(m.begun[d.Session])
		}
	}
}

// run lets time pass.
func (m *machine) run(d time.Duration) {
	for end := m.now.Add(d); m.now.Before(end); m.now = m.now.Add(tick) {
		m.start()
		burning := 0
		for _, p := range m.running {
			burning += count(p.burns > 0)
		}
		for s, p := range m.running {
			switch {
			case p.sleeps > tick:
				p.sleeps -= tick
			case p.burns > 0:
				if p.burns -= min(tick, tick*processors/time.Duration(burning)); p.burns > 0 {
					break
				}
				fallthrough
			case p.sleeps > 0:
				delete(m.running, s)
				after := m.now.Add(tick)
				m.took[s.Of.([2]any)[0].(string)] = after.Sub(m.begun[s])
				m.longest = max(m.longest, after.Sub(s.DialedAt))
				m.gate.Started(s)
				m.gate.Up(s, after)
				m.gate.Opened(s)
			}
		}
	}
}

// allWithin checks that all calls but those of servers that hang are answered in time.
func (m *machine) allWithin(n int, d time.Duration) {
	m.t.Helper()
	require.Len(m.t, m.took, n)
	for name, took := range m.took {
		require.LessOrEqual(m.t, took, d, name)
	}
}

var (
	sleeps = process{sleeps: time.Second}
	burns  = process{burns: time.Second}
	npx    = process{burns: 2 * time.Second}
	quick  = process{sleeps: tick}
	hangs  = process{}
)

func TestServersThatSleepAtTheirStartDoNotWaitForEachOther(t *testing.T) {
	m := newMachine(t)
	for i := range 24 {
		m.call(fmt.Sprint(i), m.server(fmt.Sprint(i)), sleeps)
	}
	m.run(time.Minute)
	m.allWithin(24, 3*time.Second)
}

func TestServersThatNeedProcessorTimeAtTheirStartUseAllProcessors(t *testing.T) {
	m := newMachine(t)
	for i := range 24 {
		m.call(fmt.Sprint(i), m.server(fmt.Sprint(i)), burns)
	}
	m.run(time.Minute)
	m.allWithin(24, 12*(24*time.Second)/processors/10)
}

// No process has so little processor time that its dial times out.
func TestProcessesThatNeedProcessorTimeAnswerWithinTheConnectTimeout(t *testing.T) {
	for name, servers := range map[string]int{"of one server": 1, "of many servers": 200} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			var all []*Server
			for i := range servers {
				all = append(all, m.server(fmt.Sprint(i)))
			}
			for i := range 200 {
				m.call(fmt.Sprint(i), all[i%servers], npx)
			}
			m.run(10 * time.Minute)
			m.allWithin(200, 200*2*time.Second/processors+time.Second)
			require.LessOrEqual(t, m.longest, 20*time.Second)
		})
	}
}

// Most programs have many sessions of few servers.
func TestSessionsOfOneServerThatSleepsStartTogetherOnceItHasAnswered(t *testing.T) {
	m := newMachine(t)
	srv := m.server("s")
	for i := range 24 {
		m.call(fmt.Sprint(i), srv, sleeps)
	}
	m.run(time.Minute)
	m.allWithin(24, 5500*time.Millisecond)
}

// However many sessions of a few servers hang as they start, other servers start: of up to five servers that have never
// answered, or of up to two that have.
func TestAServerThatHangsAtItsStartDelaysNoOther(t *testing.T) {
	for i := range 9 {
		hung, answered := i, i > 5
		if answered {
			hung -= 6
		}
		t.Run(fmt.Sprint(hung, " that have answered: ", answered), func(t *testing.T) {
			m := newMachine(t)
			for i := range hung {
				srv := m.server(fmt.Sprint("hung ", i))
				if answered {
					srv.Home.Endpoint.Answered(m.now)
				}
				for j := range 24 {
					m.call(fmt.Sprint("hung ", i, " ", j), srv, hangs)
				}
			}
			other := m.server("other")
			for i := range 40 {
				m.call(fmt.Sprint(i), other, quick)
				m.call(fmt.Sprint("once ", i), m.server(fmt.Sprint("once ", i)), quick)
				m.run(310 * time.Millisecond)
				m.allWithin(2*i+2, 300*time.Millisecond)
			}
		})
	}
}

// The bound of the documentation: more servers that hang delay others until their dials time out, and they are down.
func TestOneServerFewerThanStartsMayHangWithOneSessionEach(t *testing.T) {
	for hung, waits := range map[int]bool{6*processors - 1: false, 6 * processors: true} {
		t.Run(fmt.Sprint(hung), func(t *testing.T) {
			m := newMachine(t)
			var servers []*Server
			for i := range hung {
				servers = append(servers, m.server(fmt.Sprint("hung ", i)))
				m.call(fmt.Sprint("hung ", i), servers[i], hangs)
			}
			m.run(time.Second)
			m.call("other", m.server("other"), quick)
			m.run(10 * time.Second)
			require.Equal(t, waits, len(m.took) == 0)
			if !waits {
				m.allWithin(1, tick)
				return
			}
			for s := range m.running {
				delete(m.running, s)
				m.gate.Lost(s)
				m.gate.Failed(s, absent, m.now)
			}
			m.run(time.Second)
			require.Len(t, m.took, 1)
		})
	}
}

func TestServersThatAreDownAndHangDelayNoOther(t *testing.T) {
	m := newMachine(t)
	for i := range 30 {
		srv := m.server(fmt.Sprint(i))
		srv.Home.Endpoint.Failed(absent, m.now, false, m.now, rand.Float64)
		for j := range 3 {
			m.call(fmt.Sprint(i, " ", j), srv, hangs)
		}
	}
	m.run(time.Minute)
	require.Len(t, m.running, 6*processors/2)
	m.call("other", m.server("other"), quick)
	m.run(time.Second)
	m.allWithin(1, 300*time.Millisecond)
}

// A burst of processes that answer at once is not slowed down.
func TestProcessesThatAnswerAtOnceStartAtOnce(t *testing.T) {
	m := newMachine(t)
	srv := m.server("s")
	for i := range 100 {
		m.call(fmt.Sprint(i), srv, quick)
	}
	m.run(time.Second)
	m.allWithin(100, 100/(6*processors/3)*tick+tick)
}
