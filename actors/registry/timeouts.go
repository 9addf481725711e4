package registry

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
)

// onCallsTimedOut answers calls that may not wait any longer for a connection.
// The failure says what the session was waiting for.
func (r *registry) onCallsTimedOut(msg *contract.CallsTimedOut) {
	reg, now := table.Of(msg.Of), time.Now()
	for _, k := range msg.Calls {
		reg.Outstanding--
		r.table.Calls.Remove(k)
		r.owners.Answered(k)
		f := r.refusal.TimedOut(k, reg, now)
		reg.Load().Count(f.Code)
		r.reports.Answered(k, f.Code)
		reg.Load().Durations.Add(now.Sub(k.Accepted))
		if k.Caller != nil {
			r.cfg.Post.Send(k.Caller, f)
		}
	}
	r.table.Recount(reg)
	r.dialing.Touch(reg)
}
