package registry

import (
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// HandleFailure is the supervision strategy of the sessions. A session actor is restarted
// at once, so that it serves deadlines and cancellations. To delay the next dial, the
// registry sends the grant later. The registry decides about the fault when the new
// incarnation sends faulted. HandleFailure itself cannot decide, because a failure
// overtakes messages that the actor has sent before.
func (r *registry) HandleFailure(_ *actor.ActorSystem, _ actor.Supervisor, pid *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	reg := r.registrations[pid.Id]
	if reg == nil {
		return // it was told to stop
	}
	if _, typed := reason.(*actors.Fault); !typed {
		reg.bugs++
	}
	directive, told := actor.RestartDirective, any(&actor.Restart{})
	if reg.bugs > maxBugs {
		directive, told = actor.StopDirective, &actor.Stop{}
	} else {
		r.counters.Restarts++
		reg.restarts++
	}
	r.cfg.Events.Put(&actor.SupervisorEvent{Child: pid, Reason: reason, Directive: directive})
	reg.mailbox.PostSystemMessage(told)
}

// maxBugs is how many panics a session may have between two connections. The panic may be
// in the restart itself, and would then recur without end.
const maxBugs = 5

// onFaulted decides about the fault of a session.
func (r *registry) onFaulted(msg *contract.Faulted) {
	reg, f, now := registrationOf(msg.Of), msg.Fault, time.Now()
	took := now.Sub(reg.DialedAt)
	reg.wantsDial = false
	r.gate.Lost(&reg.Session)
	if reg.Draining {
		return
	}
	r.setState(reg, messages.StateWaiting)
	r.countFault(reg, f)
	if f.Dialing && r.attributeToServer(reg, f, took, now) {
		return
	}
	d := r.decide(reg, f, now)
	if d.GiveUp && f.Class == mcpbridge.Expired {
		f = expiresAtOnce(f)
	}
	reg.cause, reg.notBefore = f, now.Add(d.Delay)
	switch {
	case d.GiveUp:
		r.setState(reg, messages.StateBroken)
		reg.breakerUntil = reg.notBefore
		r.counters.GaveUp++
		r.publish(&messages.SessionGaveUp{Stamp: r.stamp(reg), Cause: f.Cause.Error(), RetryAt: reg.breakerUntil})
	case reg.wasOpen:
		r.publish(&messages.SessionRestarting{Stamp: r.stamp(reg), Attempt: d.Attempt, Delay: d.Delay, Cause: f.Cause.Error()})
	}
	reg.send(&contract.Directive{Cause: f, GaveUp: d.GiveUp, FailParked: d.GiveUp || !reg.wasOpen, RetryAt: reg.notBefore})
}

// attributeToServer reports whether a dial failed because the server is down, and then
// sends the directive. The calls continue to wait, unless FailFast is set, or this was the
// first dial of the session and it took the whole ConnectTimeout.
func (r *registry) attributeToServer(reg *registration, f *actors.Fault, took time.Duration, now time.Time) bool {
	srv, ep, e := reg.server, reg.Place.Endpoint, f.Cause
	if !reg.addressed || !ep.ShowsDown(e) {
		switch {
		case !reg.addressed && !reg.Probing: // no server was dialed: PerKey has failed
		case reg.addressed && e.Server == mcpbridge.Present:
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
	wait := !r.cfg.FailFast && (reg.Probing || reg.wasOpen || took < srv.limits.ConnectTimeout)
	reg.cause, reg.notBefore = f, now
	if ep.SeenAt.After(reg.DialedAt) { // dials of other keys succeeded meanwhile
		reg.failedDials++
		reg.notBefore = now.Add(min(admission.MinProbeInterval<<min(reg.failedDials, 10), admission.MaxProbeInterval))
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
	reg.send(&contract.Directive{Cause: f, FailParked: !wait, RetryAt: later(reg.notBefore, ep.Next)})
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
func (r *registry) decide(reg *registration, f *actors.Fault, now time.Time) (d actors.Directive) {
	defer func() {
		if reason := recover(); reason != nil {
			r.cfg.Logger.Error().Interface("reason", reason).Bytes("stack", debug.Stack()).Msg("strategy panicked")
			d = actors.Directive{Delay: time.Second}
		}
	}()
	if reg.decider == nil {
		reg.decider = r.cfg.Strategy.Decider(reg.key)
	}
	return reg.decider.Decide(f, now)
}

// countFault counts and publishes the fault of a session that was open.
func (r *registry) countFault(reg *registration, f *actors.Fault) {
	switch {
	case f.Dialing:
	case f.Class == mcpbridge.Expired:
		r.counters.Expired++
		r.publish(&messages.SessionExpired{Stamp: r.stamp(reg), Cause: f.Cause.Error()})
	default:
		r.counters.Lost++
		r.publish(&messages.SessionLost{Stamp: r.stamp(reg), Cause: f.Cause.Error()})
	}
}

// serverUp notes that a server has answered a session.
func (r *registry) serverUp(reg *registration) {
	now := time.Now()
	if ep := reg.Place.Endpoint; ep.Down || ep.SeenAt.IsZero() {
		r.logServerUp(reg, now)
	}
	r.gate.Up(&reg.Session, now)
}

// sendServerDownToAll fails the waiting calls of all sessions that are queued for an
// endpoint.
func (r *registry) sendServerDownToAll(ep *admission.Endpoint) {
	all := r.index.cursor(func(server string) bool {
		srv := r.servers[server]
		return srv != nil && (srv.turns.Home.Endpoint == ep || srv.PerKey != nil)
	})
	tell := func(reg *registration) {
		if reg.Queued() && reg.Place.Endpoint == ep && ep.Down {
			r.sendServerDown(reg)
		}
	}
	r.do(&job{step: func() bool { return all.step(tell) }})
}

// sendServerDown fails the waiting calls of a session that is queued for a server that is
// down.
func (r *registry) sendServerDown(reg *registration) {
	ep := reg.Place.Endpoint
	reg.send(&contract.ServerDown{Cause: causeOf(ep, reg), RetryAt: ep.Next})
}

// causeOf returns why a server is down, for the callers of one session, or of none: as its
// own dial has found it, if that was the same, or if it started a process, whose stderr is then
// quoted; otherwise what all keys may see.
func causeOf(ep *admission.Endpoint, reg *registration) *mcpbridge.Error {
	if reg == nil || reg.cause == nil || !reg.cause.Dialing {
		return ep.Cause
	}
	if own := reg.cause.Cause; reg.server.Command != "" || admission.Shared(own).Error() == ep.Cause.Error() {
		return own
	}
	return ep.Cause
}
