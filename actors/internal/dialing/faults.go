package dialing

import (
	"runtime/debug"
	"time"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/faults"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Opened notes that a session has a connection.
func (d *Dialing) Opened(msg *contract.Opened) {
	reg := table.Of(msg.Of)
	d.Gate.Opened(&reg.Session)
	d.ServerUp(reg)
	reg.Faults.Opened()
	d.Table.Opened(reg, msg.Generation, msg.Info)
	table.AddTo(&reg.Load().Dials, msg.Dialed)
	if !reg.Draining {
		d.Sessions.SetState(reg, messages.StateReady)
	}
	d.Reports.Opened(reg, msg)
}

// Faulted decides about the fault of a session.
func (d *Dialing) Faulted(msg *contract.Faulted) {
	reg, f, now := table.Of(msg.Of), msg.Fault, time.Now()
	took := now.Sub(reg.DialedAt)
	reg.WantsDial = false
	d.Gate.Lost(&reg.Session)
	if reg.Draining {
		return
	}
	d.Sessions.SetState(reg, messages.StateWaiting)
	d.Reports.Faulted(reg, f)
	if f.Dialing && d.attributeToServer(reg, f, took, now) {
		return
	}
	decided := d.decide(reg, f, now)
	if f = reg.Faults.Decided(f, decided, now); decided.GiveUp {
		d.Sessions.SetState(reg, messages.StateBroken)
	}
	d.Reports.Decided(reg, f, decided)
	reg.Send(&contract.Directive{Cause: f, GaveUp: decided.GiveUp, FailParked: decided.GiveUp || !reg.WasOpen, RetryAt: reg.NotBefore})
}

// attributeToServer reports whether a dial failed because the server is down, and then
// sends the directive. The calls continue to wait, unless FailFast is set, or this was the
// first dial of the session and it took the whole ConnectTimeout.
func (d *Dialing) attributeToServer(reg *table.Registration, f *actors.Fault, took time.Duration, now time.Time) bool {
	srv, ep, e := reg.Server, reg.Place.Endpoint, f.Cause
	if !reg.Addressed || !ep.ShowsDown(e) {
		switch {
		case !reg.Addressed && !reg.Probing: // no server was dialed: PerKey has failed
		case reg.Addressed && e.Server == mcpbridge.Present:
			d.ServerUp(reg)
		case reg.Probing:
			d.Gate.Unknown(&reg.Session)
		}
		return false
	}
	if !ep.SeenAt.IsZero() {
		f = faults.WithoutRemedy(f)
		e = f.Cause
	}
	wait := !d.Cfg.FailFast && (reg.Probing || reg.WasOpen || took < srv.Resolved.ConnectTimeout)
	alone := ep.SeenAt.After(reg.DialedAt) // dials of other keys have succeeded meanwhile
	if reg.Faults.Unreachable(f, alone, now); !alone {
		before := ep.Down
		d.Gate.Failed(&reg.Session, e, now)
		if !before {
			contract.Span(d.Cfg.Logger.Warn().Str("server", srv.Name).Str("err", ep.Cause.Error()), "delay", ep.Next.Sub(now)).Msg("server is down")
			if d.Cfg.FailFast {
				d.sendServerDownToAll(ep)
			}
		}
	}
	retryAt := ep.Next
	if reg.NotBefore.After(retryAt) {
		retryAt = reg.NotBefore
	}
	reg.Send(&contract.Directive{Cause: f, FailParked: !wait, RetryAt: retryAt})
	return true
}

// decide asks the strategy, and recovers from its panic.
func (d *Dialing) decide(reg *table.Registration, f *actors.Fault, now time.Time) (decided actors.Directive) {
	defer func() {
		if reason := recover(); reason != nil {
			d.Cfg.Logger.Error().Interface("reason", reason).Bytes("stack", debug.Stack()).Msg("strategy panicked")
			decided = actors.Directive{Delay: time.Second}
		}
	}()
	return reg.Faults.Ask(d.Cfg.Strategy, reg.Key, f, now)
}

// ForgetFaults forgets the faults of a session. If it waits for the end of its backoff, it
// is queued at once.
func (d *Dialing) ForgetFaults(reg *table.Registration) {
	reg.Faults.Forget()
	d.Alarm.Remove(&reg.Backoff)
	if reg.State() == messages.StateBroken {
		d.Sessions.SetState(reg, messages.StateWaiting)
	}
	reg.Send(&contract.Forget{})
	d.Advance(reg)
}
