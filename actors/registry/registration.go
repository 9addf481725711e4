package registry

import (
	"context"
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/admission"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/session"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// onUnheard notes that calls of a session wait although it has a connection, or wait no longer. Those that run
// count among them.
func (r *registry) onUnheard(msg *contract.Unheard) {
	if reg := table.Of(msg.Of); !reg.Removed() {
		reg.Unheard = msg.Cause
		r.table.Recount(reg)
	}
}

// sessionOf returns the current session of a key. If there is none, it spawns its actor, which
// does not dial.
func (r *registry) sessionOf(key messages.Key) *table.Registration {
	e := r.table.Ensure(key)
	if e.Current != nil {
		return e.Current
	}
	reg := &table.Registration{Key: key, Server: r.table.Servers[key.Server]}
	r.start(reg, r.table.JoinTenant(reg), session.Spec{Generation: e.Generation, Floor: r.table.Generations.Floor, NoResume: e.ClosesRecord(), Leftovers: r.closings.Leftovers.SessionIDs(key)})
	r.lists.SetState(reg, messages.StateWaiting)
	e.Current = reg
	return reg
}

// start spawns the actor of a session.
func (r *registry) start(reg *table.Registration, tenant *admission.Tenant, spec session.Spec) {
	reg.Limits = reg.Server.Resolved
	reg.Of = reg
	reg.Backoff.Of = func() { r.dialing.Advance(reg) }
	r.gate.Join(&reg.Session, reg.Server.Turns, tenant)
	spec.Config, spec.Key, spec.Server, spec.Limits = r.cfg, reg.Key, &reg.Server.Server, reg.Limits
	spec.Registry, spec.Registration, spec.Bind = r.mailbox, reg, r.owners.Binding(reg.Key.Scope)
	life, end := context.WithCancelCause(context.Background())
	spec.Life, reg.EndLife = life, func() { end(contract.ErrLifeOver) }
	var props *actor.Props
	props, reg.Mailbox = session.Props(spec)
	reg.PID = r.spawn(props)
	r.children++
	r.table.Add(reg)
}

// remove removes a session that is closed, and gives its slot to others.
func (r *registry) remove(reg *table.Registration) {
	r.lists.Catalogue.Closed(&reg.Lists, time.Now())
	reg.WantsDial = false
	r.due.Remove(&reg.Backoff)
	waited := r.table.Remove(reg)
	r.gate.Leave(&reg.Session)
	for _, other := range waited { // one that closes leftovers waits for its predecessor
		r.dialing.Advance(other)
	}
}

// tenantName returns the name of the tenant of a key, or "". It recovers from a panic of
// the function of the user: all keys for which it panics are one tenant.
func (r *registry) tenantName(key messages.Key) (name string) {
	defer func() {
		if reason := recover(); reason != nil {
			contract.About(r.cfg.Logger.Error(), key, 0).
				Interface("reason", reason).Bytes("stack", debug.Stack()).Msg("function Tenant panicked")
			name = "?"
		}
	}()
	return r.cfg.Tenant(key)
}
