package registry

import (
	"fmt"

	"github.com/mcpactor/mcpactor/actors/internal/table"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/messages"
)

// onPin pins the session of a key, or releases it. A key without a session gets a session
// actor that has no connection, so that the pin ends with that actor in any case.
func (r *registry) onPin(cmd *messages.Pin, from *actor.PID) {
	key := cmd.Key.Normal()
	if f := r.pinRejection(cmd, key); f != nil {
		r.respond(from, f)
		return
	}
	if r.closings.all.Count > 0 {
		r.applyPendingCloses(key)
	}
	reg := r.table.Current(key)
	switch {
	case cmd.Release && reg != nil && reg.Pinned:
		r.gate.Pin(&reg.Session, false)
		r.touch(reg)
	case cmd.Release || reg != nil && reg.Pinned:
	default:
		if full := r.fullOfPins(key, reg, func(q *admission.Quota) bool { return q.Pins >= q.Limit }); full != "" {
			f := messages.NewFailure(cmd, messages.CodeBusy, full)
			f.Key = key
			r.respond(from, f)
			return
		}
		reg = r.sessionOf(key)
		r.gate.Pin(&reg.Session, true)
		r.touch(reg)
	}
	r.respond(from, &messages.Pinned{ID: cmd.ID, Key: key, Pinned: !cmd.Release})
}

// pinRejection returns the failure of a command that is invalid, or comes too late, or nil.
func (r *registry) pinRejection(cmd *messages.Pin, key messages.Key) *messages.Failure {
	if err := key.Validate(); err != nil {
		return messages.NewFailure(cmd, messages.CodeInvalid, err.Error())
	}
	var f *messages.Failure
	switch {
	case r.stopping:
		f = messages.NewFailure(cmd, messages.CodeDraining, "the supervisor is stopping")
	case r.table.Servers[key.Server] == nil:
		f = messages.NewFailure(cmd, messages.CodeUnknownServer, r.table.NoServer(key.Server))
	default:
		return nil
	}
	f.Key = key
	return f
}

// fullOfPins returns which quota of a key is full of pinned sessions, or "". reg is the
// session of the key, or nil.
func (r *registry) fullOfPins(key messages.Key, reg *table.Registration, full func(*admission.Quota) bool) string {
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
	case full(&r.gate.Sessions):
		return fmt.Sprintf(detail, r.gate.Sessions.Limit, "", "MaxSessions")
	}
	return ""
}

// noSlotFor returns why a key cannot get a slot before a pin is released, or "".
func (r *registry) noSlotFor(key messages.Key, reg *table.Registration) string {
	if r.gate.Sessions.PinnedSlots == 0 || reg != nil && reg.Held {
		return ""
	}
	return r.fullOfPins(key, reg, func(q *admission.Quota) bool { return q.PinnedSlots >= q.Limit })
}
