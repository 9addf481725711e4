package registry

import (
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// HandleFailure is the supervision strategy of the sessions. A session actor is restarted
// at once, so that it serves deadlines and cancellations. To delay the next dial, the
// registry sends the grant later. The registry decides about the fault when the new
// incarnation sends faulted. HandleFailure itself cannot decide, because a failure
// overtakes messages that the actor has sent before.
func (r *registry) HandleFailure(_ *actor.ActorSystem, _ actor.Supervisor, pid *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	reg := r.table.WithPID(pid)
	if reg == nil {
		return // it was told to stop
	}
	if _, typed := reason.(*actors.Fault); !typed {
		reg.Bugs++
	}
	directive, told := actor.RestartDirective, any(&actor.Restart{})
	if reg.Bugs > maxBugs {
		directive, told = actor.StopDirective, &actor.Stop{}
	} else {
		r.reports.Counters.Restarts++
		reg.Restarts++
	}
	r.cfg.Events.Put(&actor.SupervisorEvent{Child: pid, Reason: reason, Directive: directive})
	reg.Mailbox.PostSystemMessage(told)
}

// maxBugs is how many panics a session may have between two connections. The panic may be
// in the restart itself, and would then recur without end.
const maxBugs = 5

// onFaulted decides about the fault of a session.
func (r *registry) onFaulted(msg *contract.Faulted) {
	reg, f, now := table.Of(msg.Of), msg.Fault, time.Now()
	took := now.Sub(reg.DialedAt)
	reg.WantsDial = false
	r.gate.Lost(&reg.Session)
	if reg.Draining {
		return
	}
	r.setState(reg, messages.StateWaiting)
	r.reports.Faulted(reg, f)
	if f.Dialing && r.attributeToServer(reg, f, took, now) {
		return
	}
	d := r.decide(reg, f, now)
	if d.GiveUp && f.Class == mcpbridge.Expired {
		f = expiresAtOnce(f)
	}
	reg.Cause, reg.NotBefore = f, now.Add(d.Delay)
	if d.GiveUp {
		r.setState(reg, messages.StateBroken)
		reg.BreakerUntil = reg.NotBefore
	}
	r.reports.Decided(reg, f, d)
	reg.Send(&contract.Directive{Cause: f, GaveUp: d.GiveUp, FailParked: d.GiveUp || !reg.WasOpen, RetryAt: reg.NotBefore})
}

// attributeToServer reports whether a dial failed because the server is down, and then
// sends the directive. The calls continue to wait, unless FailFast is set, or this was the
// first dial of the session and it took the whole ConnectTimeout.
func (r *registry) attributeToServer(reg *table.Registration, f *actors.Fault, took time.Duration, now time.Time) bool {
	srv, ep, e := reg.Server, reg.Place.Endpoint, f.Cause
	if !reg.Addressed || !ep.ShowsDown(e) {
		switch {
		case !reg.Addressed && !reg.Probing: // no server was dialed: PerKey has failed
		case reg.Addressed && e.Server == mcpbridge.Present:
			r.serverUp(reg)
		case reg.Probing:
			r.gate.Unknown(&reg.Session)
		}
		return false
	}
	if !ep.SeenAt.IsZero() {
		f = withoutRemedy(f)
		e = f.Cause
	}
	wait := !r.cfg.FailFast && (reg.Probing || reg.WasOpen || took < srv.Resolved.ConnectTimeout)
	reg.Cause, reg.NotBefore = f, now
	if ep.SeenAt.After(reg.DialedAt) { // dials of other keys succeeded meanwhile
		reg.FailedDials++
		reg.NotBefore = now.Add(min(admission.MinProbeInterval<<min(reg.FailedDials, 10), admission.MaxProbeInterval))
	} else {
		before := ep.Down
		r.gate.Failed(&reg.Session, e, now)
		if !before {
			contract.Span(r.cfg.Logger.Warn().Str("server", srv.Name).Str("err", ep.Cause.Error()), "delay", ep.Next.Sub(now)).Msg("server is down")
			if r.cfg.FailFast {
				r.sendServerDownToAll(ep)
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
func (r *registry) decide(reg *table.Registration, f *actors.Fault, now time.Time) (d actors.Directive) {
	defer func() {
		if reason := recover(); reason != nil {
			r.cfg.Logger.Error().Interface("reason", reason).Bytes("stack", debug.Stack()).Msg("strategy panicked")
			d = actors.Directive{Delay: time.Second}
		}
	}()
	if reg.Decider == nil {
		reg.Decider = r.cfg.Strategy.Decider(reg.Key)
	}
	return reg.Decider.Decide(f, now)
}

// serverUp notes that a server has answered a session.
func (r *registry) serverUp(reg *table.Registration) {
	now := time.Now()
	if ep := reg.Place.Endpoint; ep.Down || ep.SeenAt.IsZero() {
		r.reports.ServerUp(reg, now)
	}
	r.gate.Up(&reg.Session, now)
}

// sendServerDownToAll fails the waiting calls of all sessions that are queued for an
// endpoint.
func (r *registry) sendServerDownToAll(ep *admission.Endpoint) {
	all := r.table.Cursor(func(server string) bool {
		srv := r.table.Servers[server]
		return srv != nil && (srv.Turns.Home.Endpoint == ep || srv.PerKey != nil)
	})
	tell := func(reg *table.Registration) {
		if reg.Queued() && reg.Place.Endpoint == ep && ep.Down {
			r.sendServerDown(reg)
		}
	}
	r.do(&job{step: func() bool { return all.Step(tell) }})
}

// sendServerDown fails the waiting calls of a session that is queued for a server that is
// down.
func (r *registry) sendServerDown(reg *table.Registration) {
	ep := reg.Place.Endpoint
	reg.Send(&contract.ServerDown{Cause: reg.CauseOf(ep), RetryAt: ep.Next})
}
