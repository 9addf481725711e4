package actors

import (
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// HandleFailure makes the registry the supervision strategy of its children. A
// session actor is restarted at once, so that it can serve deadlines and
// cancellations; what takes time is the grant for its next dial. What becomes
// of that is decided when the new incarnation has said failed: a failure
// overtakes what its actor has sent before, a message does not.
func (r *registry) HandleFailure(_ *actor.ActorSystem, supervisor actor.Supervisor, pid *actor.PID, _ *actor.RestartStatistics, reason, _ any) {
	directive := actor.RestartDirective
	reg := r.registrations[pid.Id]
	if _, typed := reason.(*Fault); !typed && reg != nil {
		reg.bugs++
	}
	if reg == nil || reg.bugs > maxBugs {
		directive = actor.StopDirective
	}
	r.cfg.Events.Put(&actor.SupervisorEvent{Child: pid, Reason: reason, Directive: directive})
	if directive == actor.StopDirective {
		supervisor.StopChildren(pid)
		return
	}
	r.counters.Restarts++
	supervisor.RestartChildren(pid)
}

// maxBugs is how many bugs are survived between two connections: one in what a
// restart does would be met for ever.
const maxBugs = 5

// onFailed decides what becomes of a session that was restarted.
func (r *registry) onFaulted(c actor.Context, msg *faulted) {
	reg, f, now := msg.of, msg.fault, time.Now()
	took := now.Sub(reg.dialedAt)
	reg.wantsDial = false
	r.dequeue(reg)
	r.returnPermits(reg)
	defer r.grantDials(c)
	if reg.draining {
		return
	}
	r.setState(reg, messages.StateWaiting)
	r.updateRank(reg)
	r.countFault(c, reg, f)
	if f.Dialing && r.attributeToServer(c, reg, f, took, now) {
		return
	}
	v := r.decide(reg, f, now)
	if v.GiveUp && f.Class == mcpbridge.Expired {
		f = expiresAtOnce(f)
	}
	reg.cause, reg.notBefore = f, now.Add(v.Delay)
	switch {
	case v.GiveUp:
		r.setState(reg, messages.StateBroken)
		reg.breakerUntil = reg.notBefore
		r.counters.GaveUp++
		r.publish(c, &messages.SessionGaveUp{Stamp: reg.stamp(), Cause: f.Cause.Error(), RetryAt: reg.breakerUntil})
	case reg.wasOpen:
		r.publish(c, &messages.SessionRestarting{Stamp: reg.stamp(), Attempt: v.Attempt, Delay: v.Delay, Cause: f.Cause.Error()})
	}
	c.Send(reg.pid, &directive{cause: f, gaveUp: v.GiveUp, failParked: v.GiveUp || !reg.wasOpen, retryAt: reg.notBefore})
}

// blame finds out whose fault it is that a dial failed. It reports whether it is the
// server's: then those who wait for the key go on waiting, unless they do not want
// to, or it was their first session and its dial has had all the time there is.
func (r *registry) attributeToServer(c actor.Context, reg *registration, f *Fault, took time.Duration, now time.Time) bool {
	srv, ep, e := reg.server, reg.server.endpoint, f.Cause
	if !ep.showsDown(e) {
		switch {
		case e.Server == mcpbridge.Present:
			r.serverUp(c, reg)
		case reg.probing: // it has told nothing of the server
			ep.next = ep.probedAt.Add(minProbeInterval)
		}
		return false
	}
	wait := !r.cfg.FailFast && (reg.probing || reg.wasOpen || took < r.cfg.ConnectTimeout)
	reg.cause, reg.notBefore = f, now
	if ep.seenAt.After(reg.dialedAt) { // others have got through since: it is down for this one
		reg.failedDials++
		reg.notBefore = now.Add(min(minProbeInterval<<min(reg.failedDials, 10), maxProbeInterval))
	} else {
		before := ep.down
		ep.noteFailure(reg, e, took, now)
		if !before {
			r.cfg.Logger.Warn().Str("server", srv.Name).Str("err", e.Error()).Msg("server is down")
			if r.cfg.FailFast {
				r.sendServerDownToAll(c, ep)
			}
		}
	}
	c.Send(reg.pid, &directive{cause: f, failParked: !wait, retryAt: later(reg.notBefore, ep.next)})
	return true
}

// turnAllAway fails the calls that wait for a server that has just gone down.
func (r *registry) sendServerDownToAll(c actor.Context, ep *endpoint) {
	for e := r.waitingServers.Front(); e != nil; e = e.Next() {
		if srv := e.Value.(*server); srv.endpoint == ep {
			for q := srv.queue.Front(); q != nil; q = q.Next() {
				r.sendServerDown(c, q.Value.(*registration))
			}
		}
	}
}

// turnAway fails the calls of a key that wait for a server that is down.
func (r *registry) sendServerDown(c actor.Context, reg *registration) {
	ep := reg.server.endpoint
	c.Send(reg.pid, &serverDown{cause: ep.cause, retryAt: ep.next})
}

// forgetful returns the fault of a session that was given up because it expires all
// the time.
func expiresAtOnce(f *Fault) *Fault {
	fault, cause := *f, *f.Cause
	cause.Detail = "sessions of this server expire at once: is it balanced without affinity? The last one: " + f.Cause.Detail
	fault.Cause = &cause
	return &fault
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// onLate answers calls whose deadline passed while there was no connection, with
// what their session was waiting for.
func (r *registry) onCallsTimedOut(c actor.Context, msg *callsTimedOut) {
	reg, now := msg.of, time.Now()
	ep := reg.server.endpoint
	for _, k := range msg.calls {
		reg.outstanding--
		if k.caller == nil {
			continue
		}
		f := k.failure(messages.CodeDeadline, "while waiting for the session")
		switch {
		case ep.down:
			cause := ep.cause
			if reg.server.Command != "" && reg.cause != nil && reg.cause.Dialing {
				cause = reg.cause.Cause // the last words of its own process are for its callers
			}
			f = k.unavailable(cause)
			f.RetryAfter = max(0, ep.next.Sub(now))
		case reg.queuePosition != nil && r.open >= r.cfg.MaxSessions:
			f.Code, f.Detail = messages.CodeBusy, "no other session could be closed to make room for this one (MaxSessions)"
		case reg.cause != nil:
			f.Detail += ", which had failed: " + reg.cause.forCaller()
		}
		c.Send(k.caller, f)
	}
	r.recount(reg)
	r.touch(c, reg)
}

// decide asks the strategy, which is not ours to trust.
func (r *registry) decide(reg *registration, f *Fault, now time.Time) (v Decision) {
	defer func() {
		if reason := recover(); reason != nil {
			r.cfg.Logger.Error().Interface("reason", reason).Bytes("stack", debug.Stack()).Msg("strategy panicked")
			v = Decision{Delay: time.Second}
		}
	}()
	if reg.decider == nil {
		reg.decider = r.cfg.Strategy.Decider(reg.key)
	}
	return reg.decider.Decide(f, now)
}

// count notes a fault of a session that was open.
func (r *registry) countFault(c actor.Context, reg *registration, f *Fault) {
	switch {
	case f.Dialing:
	case f.Class == mcpbridge.Expired:
		r.counters.Expired++
		r.publish(c, &messages.SessionExpired{Stamp: reg.stamp(), Cause: f.Cause.Error()})
	default:
		r.counters.Lost++
		r.publish(c, &messages.SessionLost{Stamp: reg.stamp(), Cause: f.Cause.Error()})
	}
}
