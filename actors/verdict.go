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
	ch := r.children[pid.Id]
	if _, typed := reason.(*Fault); !typed && ch != nil {
		ch.bugs++
	}
	if ch == nil || ch.bugs > maxBugs {
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
func (r *registry) onFailed(c actor.Context, msg *failed) {
	ch, f, now := msg.of, msg.fault, time.Now()
	took := now.Sub(ch.dialed)
	ch.wants = false
	r.dequeue(ch)
	r.endDial(ch)
	defer r.pump(c)
	if ch.leaving {
		return
	}
	r.enter(ch, messages.StateWaiting)
	r.place(ch)
	r.count(c, ch, f)
	if f.Dialing && r.blame(c, ch, f, took, now) {
		return
	}
	v := r.decide(ch, f, now)
	if v.GiveUp && f.Class == mcpbridge.Expired {
		f = forgetful(f)
	}
	ch.cause, ch.notBefore = f, now.Add(v.Delay)
	switch {
	case v.GiveUp:
		r.enter(ch, messages.StateBroken)
		ch.openUntil = ch.notBefore
		r.counters.GaveUp++
		r.emit(c, &messages.SessionGaveUp{Stamp: ch.stamp(), Cause: f.Cause.Error(), RetryAt: ch.openUntil})
	case ch.served:
		r.emit(c, &messages.SessionRestarting{Stamp: ch.stamp(), Attempt: v.Attempt, Delay: v.Delay, Cause: f.Cause.Error()})
	}
	c.Send(ch.pid, &verdict{cause: f, gaveUp: v.GiveUp, fail: v.GiveUp || !ch.served, retryAt: ch.notBefore})
}

// blame finds out whose fault it is that a dial failed. It reports whether it is the
// server's: then those who wait for the key go on waiting, unless they do not want
// to, or it was their first session and its dial has had all the time there is.
func (r *registry) blame(c actor.Context, ch *child, f *Fault, took time.Duration, now time.Time) bool {
	srv, ep, e := ch.server, ch.server.endpoint, f.Cause
	if !ep.absent(e) {
		switch {
		case e.Server == mcpbridge.Present:
			r.shown(c, ch)
		case ch.probing: // it has told nothing of the server
			ep.next = ep.probed.Add(probeLeast)
		}
		return false
	}
	wait := !r.cfg.FailFast && (ch.probing || ch.served || took < r.cfg.ConnectTimeout)
	ch.cause, ch.notBefore = f, now
	if ep.seen.After(ch.dialed) { // others have got through since: it is down for this one
		ch.refusals++
		ch.notBefore = now.Add(min(probeLeast<<min(ch.refusals, 10), probeMost))
	} else {
		before := ep.down
		ep.refuse(ch, e, took, now)
		if !before {
			r.cfg.Logger.Warn().Str("server", srv.Name).Str("err", e.Error()).Msg("server is down")
			if r.cfg.FailFast {
				r.turnAllAway(c, ep)
			}
		}
	}
	c.Send(ch.pid, &verdict{cause: f, fail: !wait, retryAt: later(ch.notBefore, ep.next)})
	return true
}

// turnAllAway fails the calls that wait for a server that has just gone down.
func (r *registry) turnAllAway(c actor.Context, ep *endpoint) {
	for e := r.turns.Front(); e != nil; e = e.Next() {
		if srv := e.Value.(*server); srv.endpoint == ep {
			for q := srv.queue.Front(); q != nil; q = q.Next() {
				r.turnAway(c, q.Value.(*child))
			}
		}
	}
}

// turnAway fails the calls of a key that wait for a server that is down.
func (r *registry) turnAway(c actor.Context, ch *child) {
	ep := ch.server.endpoint
	c.Send(ch.pid, &unreachable{cause: ep.cause, retryAt: ep.next})
}

// forgetful returns the fault of a session that was given up because it expires all
// the time.
func forgetful(f *Fault) *Fault {
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
func (r *registry) onLate(c actor.Context, msg *late) {
	ch, now := msg.of, time.Now()
	ep := ch.server.endpoint
	for _, k := range msg.calls {
		ch.outstanding--
		if k.caller == nil {
			continue
		}
		f := k.failure(messages.CodeDeadline, "while waiting for the session")
		switch {
		case ep.down:
			cause := ep.cause
			if ch.server.Command != "" && ch.cause != nil && ch.cause.Dialing {
				cause = ch.cause.Cause // the last words of its own process are for its callers
			}
			f = k.giveUp(cause)
			f.RetryAfter = max(0, ep.next.Sub(now))
		case ch.elem != nil && r.open >= r.cfg.MaxSessions:
			f.Code, f.Detail = messages.CodeBusy, "no other session could be closed to make room for this one (MaxSessions)"
		case ch.cause != nil:
			f.Detail += ", which had failed: " + ch.cause.forCaller()
		}
		c.Send(k.caller, f)
	}
	r.recount(ch)
	r.touch(c, ch)
}

// decide asks the strategy, which is not ours to trust.
func (r *registry) decide(ch *child, f *Fault, now time.Time) (v Verdict) {
	defer func() {
		if reason := recover(); reason != nil {
			r.cfg.Logger.Error().Interface("reason", reason).Bytes("stack", debug.Stack()).Msg("strategy panicked")
			v = Verdict{Delay: time.Second}
		}
	}()
	if ch.decider == nil {
		ch.decider = r.cfg.Strategy.Decider(ch.key)
	}
	return ch.decider.Decide(f, now)
}

// count notes a fault of a session that was open.
func (r *registry) count(c actor.Context, ch *child, f *Fault) {
	switch {
	case f.Dialing:
	case f.Class == mcpbridge.Expired:
		r.counters.Expired++
		r.emit(c, &messages.SessionExpired{Stamp: ch.stamp(), Cause: f.Cause.Error()})
	default:
		r.counters.Lost++
		r.emit(c, &messages.SessionLost{Stamp: ch.stamp(), Cause: f.Cause.Error()})
	}
}
