package dialing

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/closing"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/jobs"
	"github.com/mcpactor/mcpactor/actors/internal/lists"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/owners"
	"github.com/mcpactor/mcpactor/actors/internal/reports"
	"github.com/mcpactor/mcpactor/actors/internal/servers"
	"github.com/mcpactor/mcpactor/actors/internal/sessions"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// strategy has decided everything beforehand.
type strategy struct{ decides actors.Directive }

func (s strategy) Decider(messages.Key) actors.Decider { return s }

func (s strategy) Decide(*actors.Fault, time.Time) actors.Directive { return s.decides }

// spawner spawns no actor.
type spawner int

func (s *spawner) SpawnPrefix(*actor.Props, string) *actor.PID {
	*s++
	return &actor.PID{Id: fmt.Sprint(*s)}
}

// session is a session whose actor does nothing, and what it was sent since it was last asked.
type session struct {
	*table.Registration
	read []any
}

func (s *session) InvokeUserMessage(msg any) { s.read = append(s.read, msg) }
func (*session) InvokeSystemMessage(any)     {}
func (*session) EscalateFailure(_, _ any)    {}

// take returns what the session was sent.
func (s *session) take() (read []any) {
	read, s.read = s.read, nil
	return read
}

// newDialing returns dialing of sessions of one server.
func newDialing(cfg protocol.Config) *Dialing {
	cfg.Servers, cfg.MaxDials, cfg.Random, cfg.ConnectTimeout = []mcpbridge.Server{{Name: "s", URL: "http://s.example/mcp"}}, 10, rand.Float64, time.Minute
	cfg.Logger, cfg.Events = relay.NewLogger(zerolog.Nop()), relay.New(100, func(any) {}, nil, nil)
	c, m, a, book := &contract.Config{Config: cfg}, new(mailbox.Mailbox), new(alarm.Alarm[func()]), owners.New()
	with := With{
		Cfg: c, Table: table.New(servers.LimitsOf(c, mcpbridge.Limits{}), table.Tenants{}), Gate: servers.NewGate(c), Reports: reports.New(c), Alarm: a, Jobs: jobs.New(c, m),
	}
	with.Sessions = sessions.New(sessions.With{
		Cfg: c, Mailbox: m, Table: with.Table, Gate: with.Gate, Servers: servers.New(c, with.Table, with.Gate),
		Lists: lists.New(lists.With{Cfg: c, Table: with.Table, Owners: book}), Owners: book, Closings: closing.New(10), Alarm: a,
	})
	with.Sessions.Spawner = new(spawner)
	return New(with)
}

// session spawns a session of a scope.
func (d *Dialing) session(scope string) *session {
	s := &session{Registration: d.Sessions.Current(messages.Key{Server: "s", Scope: scope})}
	s.Mailbox = new(mailbox.Mailbox)
	s.Mailbox.RegisterHandlers(s, actor.NewSynchronizedDispatcher(1))
	return s
}

// fault returns the fault of a dial.
func fault(e mcpbridge.Error) *actors.Fault {
	return &actors.Fault{Class: e.Class, Dialing: true, Cause: &e}
}

// The least recently used idle session is evicted for one that wants to dial, which has its slot once that is closed.
func TestAnIdleSessionMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialing(protocol.Config{MaxSessions: 2})
		var open []*session
		for _, scope := range []string{"a", "b"} {
			s := d.session(scope)
			d.Wanted(s.Registration)
			require.Equal(t, []any{&contract.Grant{}}, s.take())
			require.Equal(t, messages.StateConnecting, s.State())
			d.Opened(&contract.Opened{Of: s.Registration, Generation: 1})
			require.Equal(t, messages.StateReady, s.State())
			d.Touch(s.Registration)
			open = append(open, s)
		}
		d.Touch(open[0].Registration)
		third := d.session("c")
		d.Wanted(third.Registration)
		require.Empty(t, third.take())
		require.Empty(t, open[0].take())
		require.Equal(t, []any{&contract.Drain{Evict: true}}, open[1].take())
		for _, other := range d.Sessions.Remove(open[1].Registration) {
			d.Advance(other)
		}
		d.Admit()
		require.Equal(t, []any{&contract.Grant{}}, third.take())
		require.EqualValues(t, 1, d.Reports.Counters.Evicted)
	})
}

func TestASessionIsEvictedAfterItsIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialing(protocol.Config{MaxSessions: 2, IdleTimeout: time.Minute})
		s := d.session("a")
		d.Wanted(s.Registration)
		d.Opened(&contract.Opened{Of: s.Registration, Generation: 1})
		d.Touch(s.Registration)
		s.take()
		for range 2 {
			time.Sleep(time.Minute - time.Second)
			d.EvictIdle()
			require.Empty(t, s.take())
			d.Touch(s.Registration)
		}
		time.Sleep(time.Minute)
		d.Alarm.Due(time.Now()).What()
		require.Equal(t, []any{&contract.Drain{Evict: true}}, s.take())
	})
}

// What follows from a dial that fails: whether the server counts as down, and whether the calls of the session wait.
func TestADialThatFails(t *testing.T) {
	absent := mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Absent}
	refused := mcpbridge.Error{Class: mcpbridge.Unauthorized, Server: mcpbridge.Present}
	strange := mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Strange}
	gaveUp := actors.Directive{Delay: time.Hour, GiveUp: true}
	for _, test := range []struct {
		name        string
		fault       mcpbridge.Error
		decides     actors.Directive
		failFast    bool
		took        time.Duration
		down, fails bool // the server, the calls
		state       messages.State
	}{
		{"no server", absent, gaveUp, false, 0, true, false, messages.StateWaiting},
		{"no server, and the calls do not wait", absent, gaveUp, true, 0, true, true, messages.StateWaiting},
		{"no server, after the whole timeout", absent, gaveUp, false, time.Minute, true, true, messages.StateWaiting},
		{"a server that refuses a key", refused, actors.Directive{Delay: time.Second}, false, 0, false, true, messages.StateWaiting},
		{"a server that refuses a key for good", refused, gaveUp, false, 0, false, true, messages.StateBroken},
		{"something else than a server, which has never been seen", strange, gaveUp, false, 0, false, true, messages.StateBroken},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDialing(protocol.Config{MaxSessions: 2, FailFast: test.failFast, Strategy: strategy{test.decides}})
			s := d.session("a")
			d.Wanted(s.Registration)
			s.take()
			time.Sleep(test.took)
			d.Faulted(&contract.Faulted{Of: s.Registration, Fault: fault(test.fault)})
			require.Equal(t, test.down, s.Place.Endpoint.Down, test.name)
			require.Equal(t, test.state, s.State(), test.name)
			told := s.take()
			require.Len(t, told, 1)
			require.Equal(t, test.fails, told[0].(*contract.Directive).FailParked, test.name)
			require.Equal(t, test.state == messages.StateBroken, told[0].(*contract.Directive).GaveUp, test.name)
		})
	}
}

// A session waits for the end of its backoff, unless its faults are forgotten.
func TestASessionWaitsForTheEndOfItsBackoff(t *testing.T) {
	for _, forget := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			d := newDialing(protocol.Config{MaxSessions: 2, Strategy: strategy{actors.Directive{Delay: time.Minute}}})
			s := d.session("a")
			d.Wanted(s.Registration)
			d.Faulted(&contract.Faulted{Of: s.Registration, Fault: fault(mcpbridge.Error{Class: mcpbridge.Internal})})
			s.take()
			d.Wanted(s.Registration)
			require.Empty(t, s.take())
			if forget {
				d.ForgetFaults(s.Registration)
				require.Equal(t, []any{&contract.Forget{}, &contract.Grant{}}, s.take())
				return
			}
			time.Sleep(time.Minute)
			for due := d.Alarm.Due(time.Now()); due != nil; due = d.Alarm.Due(time.Now()) {
				due.What()
			}
			require.Equal(t, []any{&contract.Grant{}}, s.take())
		})
	}
}
