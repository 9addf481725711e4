package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// onCallsTimedOut answers calls that may not wait any longer for a connection.
// The failure says what the session was waiting for.
func (r *registry) onCallsTimedOut(c actor.Context, msg *callsTimedOut) {
	reg, now := msg.of, time.Now()
	ep := reg.server.endpoint
	for _, k := range msg.calls {
		reg.outstanding--
		r.calls.remove(k)
		r.disown(c, k)
		f := k.failure(k.codeOfWait(now), "while waiting for the session")
		switch {
		case ep.down:
			f = k.unavailable(ep.causeFor(reg))
			retryIn(f, ep.next.Sub(now))
		case r.exhausted(reg) != "":
			f.Detail = r.exhausted(reg)
			if f.Code == messages.CodeDeadline {
				f.Code = messages.CodeBusy
			}
		case reg.cause != nil:
			f.Detail += ", which had failed: " + forCaller(reg.cause)
			if f.Code == messages.CodeUnavailable {
				f.Cause, f.RetryAfter = reg.cause.Cause, max(0, reg.notBefore.Sub(now))
			}
		}
		reg.group.load.count(f.Code)
		r.logReply(k, f.Code)
		reg.group.load.Durations.Add(now.Sub(k.accepted))
		if k.caller != nil {
			r.cfg.Post.Send(k.caller, f)
		}
	}
	r.recount(reg)
	r.touch(c, reg)
	if reg.outstanding == 0 && r.waitingServers.Len() > 0 {
		r.grantDials(c) // it may be evicted now
	}
}

// exhausted returns why a session that waits for a grant could not get a slot, or "".
func (r *registry) exhausted(reg *registration) string {
	const none = "could be closed to make room for this one"
	if pinned := r.noSlotFor(reg.key, reg); pinned != "" {
		return pinned
	}
	switch {
	case reg.queuePosition == nil:
		return ""
	case reg.tenant != nil && reg.tenant.sessions.room() == 0:
		return "no other session of the tenant " + none + " (MaxSessionsPerTenant)"
	case reg.server.sessions.room() == 0:
		return "no other session of the server " + none + " (MaxSessions of the server)"
	case r.sessions.room() == 0:
		return "no other session " + none + " (MaxSessions)"
	}
	return ""
}
