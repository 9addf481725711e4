package refusal

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// Malformed returns the failure for a call whose operation is invalid, or nil.
func Malformed(k *contract.Call) *messages.Failure {
	if err := k.Key.Validate(); err != nil {
		f := k.Failure(messages.CodeInvalid, err.Error())
		f.Key.Scope = "" // which may be too long, or not printable
		return f
	}
	if err := k.Op.Validate(); err != nil {
		return k.Failure(messages.CodeInvalid, err.Error())
	}
	if replay := k.Op.Head().Replay; replay > messages.ReplayAlways {
		return k.Failure(messages.CodeInvalid, fmt.Sprintf("replay: %d is none of the constants", replay))
	}
	h := k.Op.Head()
	if err := errors.Join(h.Attributes.Validate(), h.Trace.Validate()); err != nil {
		return k.Failure(messages.CodeInvalid, err.Error())
	}
	return nil
}

// Of returns the failure for a call that is well-formed and is not accepted, or nil.
func (r *Refusal) Of(k *contract.Call, now time.Time) *messages.Failure {
	srv := r.table.Servers[k.Key.Server]
	switch op, custom := k.Op.(*messages.Custom); {
	case custom && srv != nil && !slices.Contains(srv.CustomMethods, op.Name):
		return k.Failure(messages.CodeInvalid, fmt.Sprintf("name: %q is not one of the customMethods of the server", table.Truncated(op.Name)))
	case r.table.Stopping && !k.Releases:
		return k.Failure(messages.CodeDraining, stopping)
	case srv == nil:
		return k.Failure(messages.CodeUnknownServer, r.table.Servers.Unknown(k.Key.Server))
	case !now.Before(k.Deadline):
		return k.Failure(messages.CodeDeadline, "the deadline had passed before the call came")
	}
	reg := r.table.Current(k.Key)
	if f := r.unavailable(k, srv, reg, now); f != nil {
		return f
	}
	if f := r.busy(k, srv, reg); f != nil {
		return f
	}
	return r.Orphaned(k)
}

// Orphaned returns the failure for a call whose owner is known to have terminated, or nil.
func (r *Refusal) Orphaned(k *contract.Call) *messages.Failure {
	if owner := k.Op.Head().Owner; owner != nil && r.cfg.Post.Gone(owner) {
		return k.Failure(messages.CodeCancelled, OwnerTerminated)
	}
	return nil
}

// unavailable returns the failure for a call that would wait for a server that is down, with FailFast, or for a
// session that was given up, or nil. reg is the session of the key, or nil.
func (r *Refusal) unavailable(k *contract.Call, srv *table.Server, reg *table.Registration, now time.Time) *messages.Failure {
	ep := srv.Turns.Home.Endpoint
	if reg != nil {
		ep = reg.Place.Endpoint
	}
	var f *messages.Failure
	switch {
	case r.cfg.FailFast && !k.Watches() && ep.Down && !ep.AllowsProbe(now) && (reg == nil || reg.Unconnected()):
		f = k.Unavailable(reg.CauseOf(ep))
		contract.RetryIn(f, ep.Next.Sub(now))
	case reg != nil && reg.BreakerOpen(now) && !reg.MayHaveNewCredentials():
		f = k.Unavailable(reg.Cause.Cause)
		contract.RetryIn(f, reg.BreakerUntil.Sub(now))
	}
	return f
}

// busy returns the failure for a call that finds too many others waiting, or nil. reg is the session of the key, or
// nil.
func (r *Refusal) busy(k *contract.Call, srv *table.Server, reg *table.Registration) *messages.Failure {
	detail := ""
	t := r.table.TenantOf(k.Key, reg)
	switch most := srv.Resolved.MaxInFlight + srv.Resolved.MaxWaiting; {
	case k.Ticket.Kept:
	case reg != nil && reg.Outstanding >= most:
		detail = fmt.Sprintf("%d calls of this session are running or waiting (MaxInFlight, MaxWaiting)", reg.Outstanding)
	case reg.HasRoom(srv.Resolved.MaxInFlight):
	case r.noSlotFor(k.Key, reg) != "":
		detail = r.noSlotFor(k.Key, reg)
	case t.IsBusy(most):
		detail = fmt.Sprintf("%d calls of all sessions of the tenant are waiting (MaxSessionsPerTenant sessions with MaxInFlight, MaxWaiting)", t.Waiting())
	case r.table.Waiting >= r.cfg.MaxWaitingTotal:
		detail = fmt.Sprintf("%d calls of all sessions are waiting (MaxWaitingTotal)", r.table.Waiting)
	}
	if detail == "" {
		return nil
	}
	return k.Failure(messages.CodeBusy, detail)
}
