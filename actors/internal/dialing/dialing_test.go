package dialing

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/jobs"
	"github.com/mcpactor/mcpactor/actors/internal/reports"
	"github.com/mcpactor/mcpactor/actors/internal/sessions/sessionstest"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// strategy has decided everything beforehand.
type strategy struct{ decides actors.Directive }

func (s strategy) Decider(messages.Key) actors.Decider { return s }

func (s strategy) Decide(*actors.Fault, time.Time) actors.Directive { return s.decides }

// newDialing returns dialing of sessions of one server.
func newDialing(cfg protocol.Config) *Dialing {
	cfg.Servers, cfg.ConnectTimeout = []mcpbridge.Server{{Name: "s", URL: "http://s.example/mcp"}}, time.Minute
	all := sessionstest.New(cfg)
	return New(With{
		Cfg: all.Cfg, Table: all.Table, Gate: all.Gate, Sessions: all, Reports: reports.New(all.Cfg), Alarm: all.Alarm, Jobs: jobs.New(all.Cfg, all.Mailbox),
	})
}

// session spawns a session of a scope.
func (d *Dialing) session(scope string) sessionstest.Session {
	return sessionstest.Current(d.Sessions, messages.Key{Server: "s", Scope: scope})
}

// fault returns the fault of a dial.
func fault(e mcpbridge.Error) *actors.Fault {
	return &actors.Fault{Class: e.Class, Dialing: true, Cause: &e}
}

// The least recently used idle session is evicted for one that wants to dial, which has its slot once that is closed.
func TestAnIdleSessionMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDialing(protocol.Config{MaxSessions: 2})
		var open []sessionstest.Session
		for _, scope := range []string{"a", "b"} {
			s := d.session(scope)
			d.Wanted(s.Registration)
			require.Equal(t, []any{&contract.Grant{}}, s.Take())
			require.Equal(t, messages.StateConnecting, s.State())
			d.Opened(&contract.Opened{Of: s.Registration, Generation: 1})
			require.Equal(t, messages.StateReady, s.State())
			d.Touch(s.Registration)
			open = append(open, s)
		}
		d.Touch(open[0].Registration)
		third := d.session("c")
		d.Wanted(third.Registration)
		require.Empty(t, third.Take())
		require.Empty(t, open[0].Take())
		require.Equal(t, []any{&contract.Drain{Evict: true}}, open[1].Take())
		for _, other := range d.Sessions.Remove(open[1].Registration) {
			d.Advance(other)
		}
		d.Admit()
		require.Equal(t, []any{&contract.Grant{}}, third.Take())
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
		s.Take()
		for range 2 {
			time.Sleep(time.Minute - time.Second)
			d.EvictIdle()
			require.Empty(t, s.Take())
			d.Touch(s.Registration)
		}
		time.Sleep(time.Minute)
		d.Alarm.Due(time.Now()).What()
		require.Equal(t, []any{&contract.Drain{Evict: true}}, s.Take())
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
			s.Take()
			time.Sleep(test.took)
			d.Faulted(&contract.Faulted{Of: s.Registration, Fault: fault(test.fault)})
			require.Equal(t, test.down, s.Place.Endpoint.Down, test.name)
			require.Equal(t, test.state, s.State(), test.name)
			told := s.Take()
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
			s.Take()
			d.Wanted(s.Registration)
			require.Empty(t, s.Take())
			if forget {
				d.ForgetFaults(s.Registration)
				require.Equal(t, []any{&contract.Forget{}, &contract.Grant{}}, s.Take())
				return
			}
			time.Sleep(time.Minute)
			for due := d.Alarm.Due(time.Now()); due != nil; due = d.Alarm.Due(time.Now()) {
				due.What()
			}
			require.Equal(t, []any{&contract.Grant{}}, s.Take())
		})
	}
}
