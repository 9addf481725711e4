package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// onCallsTimedOut answers calls whose deadline has passed before there was a connection.
// The failure says what the session was waiting for.
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
				cause = reg.cause.Cause // with the stderr of the process of this key
			}
			f = k.unavailable(cause)
			f.RetryAfter = max(0, ep.next.Sub(now))
		case reg.queuePosition != nil && r.open >= r.cfg.MaxSessions:
			f.Code, f.Detail = messages.CodeBusy, "no other session could be closed to make room for this one (MaxSessions)"
		case reg.cause != nil:
			f.Detail += ", which had failed: " + forCaller(reg.cause)
		}
		c.Send(k.caller, f)
	}
	r.recount(reg)
	r.touch(c, reg)
}
