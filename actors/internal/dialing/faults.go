package dialing

import (
	"runtime/debug"
	"time"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// New returns dialing without sessions.
func New(with With) *Dialing {
	d := &Dialing{With: with, controls: map[*contract.ControlWanted]*admission.Control{}}
	d.gateDue.What, d.idleDue.What = d.onGateDue, d.EvictIdle
	return d
}

// Opened notes that a session has a connection.
func (d *Dialing) Opened(msg *contract.Opened) {
	reg := table.Of(msg.Of)
	d.Gate.Opened(&reg.Session)
	d.ServerUp(reg)
	reg.WasOpen, reg.Cause, reg.BreakerUntil = true, nil, time.Time{}
	reg.Bugs, reg.FailedDials = 0, 0
	reg.Generation, reg.Info = msg.Generation, msg.Info
	table.AddTo(&reg.Load().Dials, msg.Dialed)
	d.Table.Remember(reg.Key, msg.Generation)
	if !reg.Draining {
		d.Lists.SetState(reg, messages.StateReady)
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
	d.Lists.SetState(reg, messages.StateWaiting)
	d.Reports.Faulted(reg, f)
	if f.Dialing && d.attributeToServer(reg, f, took, now) {
		return
	}
	decided := d.decide(reg, f, now)
	if decided.GiveUp && f.Class == mcpbridge.Expired {
		f = expiresAtOnce(f)
	}
	reg.Cause, reg.NotBefore = f, now.Add(decided.Delay)
	if decided.GiveUp {
		d.Lists.SetState(reg, messages.StateBroken)
		reg.BreakerUntil = reg.NotBefore
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
		f = withoutRemedy(f)
		e = f.Cause
	}
	wait := !d.Cfg.FailFast && (reg.Probing || reg.WasOpen || took < srv.Resolved.ConnectTimeout)
	reg.Cause, reg.NotBefore = f, now
	if ep.SeenAt.After(reg.DialedAt) { // dials of other keys succeeded meanwhile
		reg.FailedDials++
		reg.NotBefore = now.Add(min(admission.MinProbeInterval<<min(reg.FailedDials, 10), admission.MaxProbeInterval))
	} else {
		before := ep.Down
		d.Gate.Failed(&reg.Session, e, now)
		if !before {
			contract.Span(d.Cfg.Logger.Warn().Str("server", srv.Name).Str("err", ep.Cause.Error()), "delay", ep.Next.Sub(now)).Msg("server is down")
			if d.Cfg.FailFast {
				d.sendServerDownToAll(ep)
			}
		}
	}
	reg.Send(&contract.Directive{Cause: f, FailParked: !wait, RetryAt: later(reg.NotBefore, ep.Next)})
	return true
}

// withoutRemedy returns the fault of a server that has answered before: it may come back by itself.
func withoutRemedy(f *actors.Fault) *actors.Fault {
	fault, cause := *f, *f.Cause
	cause.Remedy = ""
	fault.Cause = &cause
	return &fault
}

// expiresAtOnce returns the fault of a session that is given up because its MCP sessions
// expire soon after they are opened.
func expiresAtOnce(f *actors.Fault) *actors.Fault {
	fault, cause := *f, *f.Cause
	cause.Detail = "sessions of this server expire at once: is it balanced without affinity? The last one: " + f.Cause.Detail
	fault.Cause = &cause
	return &fault
}

// later returns the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// decide asks the strategy, and recovers from its panic.
func (d *Dialing) decide(reg *table.Registration, f *actors.Fault, now time.Time) (decided actors.Directive) {
	defer func() {
		if reason := recover(); reason != nil {
			d.Cfg.Logger.Error().Interface("reason", reason).Bytes("stack", debug.Stack()).Msg("strategy panicked")
			decided = actors.Directive{Delay: time.Second}
		}
	}()
	if reg.Decider == nil {
		reg.Decider = d.Cfg.Strategy.Decider(reg.Key)
	}
	return reg.Decider.Decide(f, now)
}

// ForgetFaults forgets the faults of a session. If it waits for the end of its backoff, it
// is queued at once.
func (d *Dialing) ForgetFaults(reg *table.Registration) {
	reg.Decider, reg.Cause, reg.FailedDials = nil, nil, 0
	reg.NotBefore, reg.BreakerUntil = time.Time{}, time.Time{}
	d.Alarm.Remove(&reg.Backoff)
	if reg.State() == messages.StateBroken {
		d.Lists.SetState(reg, messages.StateWaiting)
	}
	reg.Send(&contract.Forget{})
	d.Advance(reg)
}
