package registry

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/table"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// onCallsTimedOut answers calls that may not wait any longer for a connection.
// The failure says what the session was waiting for.
func (r *registry) onCallsTimedOut(msg *contract.CallsTimedOut) {
	reg, now := table.Of(msg.Of), time.Now()
	ep := reg.Place.Endpoint
	for _, k := range msg.Calls {
		reg.Outstanding--
		r.table.Calls.Remove(k)
		r.disown(k)
		f := k.Failure(k.CodeOfWait(now), "while waiting for the session")
		switch {
		case ep.Down:
			f = k.Unavailable(reg.CauseOf(ep))
			contract.RetryIn(f, ep.Next.Sub(now))
		case r.exhausted(reg) != "":
			f.Detail = r.exhausted(reg)
			if f.Code == messages.CodeDeadline {
				f.Code = messages.CodeBusy
			}
		case reg.Queued() && reg.Server.Turns.StartRoom() == 0:
			f.Detail += ", whose process may not start before others have answered (MaxStarts)"
		case reg.Cause != nil:
			f.Detail += ", which had failed: " + contract.ForCaller(reg.Cause)
			if f.Code == messages.CodeUnavailable {
				f.Cause, f.RetryAfter = reg.Cause.Cause, max(0, reg.NotBefore.Sub(now))
			}
		}
		reg.Load().Count(f.Code)
		r.logReply(k, f.Code)
		reg.Load().Durations.Add(now.Sub(k.Accepted))
		if k.Caller != nil {
			r.cfg.Post.Send(k.Caller, f)
		}
	}
	r.table.Recount(reg)
	r.touch(reg)
}

// exhausted returns why a session that waits for a grant could not get a slot, or "".
func (r *registry) exhausted(reg *table.Registration) string {
	const none = "could be closed to make room for this one"
	if pinned := r.noSlotFor(reg.Key, reg); pinned != "" {
		return pinned
	}
	switch {
	case !reg.Queued():
		return ""
	case reg.Tenant != nil && reg.Tenant.Room() == 0:
		return "no other session of the tenant " + none + " (MaxSessionsPerTenant)"
	case reg.Server.Turns.Quota.Room() == 0:
		return "no other session of the server " + none + " (MaxSessions of the server)"
	case r.gate.Sessions.Room() == 0:
		return "no other session " + none + " (MaxSessions)"
	}
	return ""
}
