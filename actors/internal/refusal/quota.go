package refusal

import (
	"fmt"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// FullOfPins returns which quota of a key is full of pinned sessions, so that no other one can be pinned, or "". reg is the
// session of the key, or nil.
func (r *Refusal) FullOfPins(key messages.Key, reg *table.Registration) string {
	return r.fullOfPins(key, reg, func(q *admission.Quota) bool { return q.Pins >= q.Limit })
}

// noSlotFor returns why a key cannot get a slot before a pin is released, or "".
func (r *Refusal) noSlotFor(key messages.Key, reg *table.Registration) string {
	if r.sessions.PinnedSlots == 0 || reg != nil && reg.Held {
		return ""
	}
	return r.fullOfPins(key, reg, func(q *admission.Quota) bool { return q.PinnedSlots >= q.Limit })
}

// fullOfPins returns which quota of a key is full, or "".
func (r *Refusal) fullOfPins(key messages.Key, reg *table.Registration, full func(*admission.Quota) bool) string {
	const detail = "all %d sessions %sthat may be open are pinned (%s)"
	t, srv := r.table.TenantOf(key, reg), r.table.Servers[key.Server]
	if reg != nil {
		srv = reg.Server // which a reload may have removed
	}
	switch {
	case t != nil && full(&t.Quota):
		return fmt.Sprintf(detail, t.Limit, "of the tenant ", "MaxSessionsPerTenant")
	case full(srv.Turns.Quota):
		return fmt.Sprintf(detail, srv.Turns.Quota.Limit, "of the server ", "MaxSessions of the server")
	case full(r.sessions):
		return fmt.Sprintf(detail, r.sessions.Limit, "", "MaxSessions")
	}
	return ""
}

// Exhausted returns why a session that waits for a grant could not get a slot, or "".
func (r *Refusal) Exhausted(reg *table.Registration) string {
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
	case r.sessions.Room() == 0:
		return "no other session " + none + " (MaxSessions)"
	}
	return ""
}

// TimedOut returns the failure for a call that may not wait any longer for the connection of its session. It says what the
// session was waiting for.
func (r *Refusal) TimedOut(k *contract.Call, reg *table.Registration, now time.Time) *messages.Failure {
	ep, exhausted := reg.Place.Endpoint, r.Exhausted(reg)
	f := k.Failure(k.CodeOfWait(now), "while waiting for the session")
	switch {
	case ep.Down:
		f = k.Unavailable(reg.CauseOf(ep))
		contract.RetryIn(f, ep.Next.Sub(now))
	case exhausted != "":
		f.Detail = exhausted
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
	return f
}
