package registry

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/calls"
	"github.com/mcpactor/mcpactor/actors/internal/closing"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/jobs"
	"github.com/mcpactor/mcpactor/actors/internal/owners"
	"github.com/mcpactor/mcpactor/actors/internal/refusal"
	"github.com/mcpactor/mcpactor/messages"
)

// onBind binds a scope, or removes its binding.
func (r *registry) onBind(cmd *messages.Bind, from *actor.PID) {
	scope := (messages.Key{Scope: cmd.Scope}).Normal().Scope
	if f := r.owners.Bind(scope, cmd, r.cfg.Capabilities); f != nil {
		r.respond(from, f)
		return
	}
	r.lists.Separate(scope, cmd)
	r.keeper.Alive(scope)
	for _, reg := range r.table.OfScope(scope) {
		reg.Send(&contract.ScopeBound{Bind: cmd})
	}
	r.respond(from, &messages.Bound{ID: cmd.ID, Scope: scope})
}

// followOwners carries out what the book of owners has decided.
func (r *registry) followOwners() {
	for _, d := range r.owners.Decided() {
		switch {
		case d.Watch != nil:
			r.cfg.Post.Watch(d.Watch, r.self)
		case d.Unwatch != nil:
			r.cfg.Post.Unwatch(d.Unwatch, r.self)
		default:
			r.lists.Separate(d.Scope, d.Unbound)
		}
	}
}

// ownerEnd is the end of an owner, whose calls are cancelled and whose scopes are closed in steps.
type ownerEnd struct {
	*owners.End
	upTo   uint64 // the serial of the last call before the end
	last   uint64 // that of the last session
	event  *messages.OwnerTerminated
	closes *closing.Command // of the scopes, or nil
}

// onOwnerTerminated cancels what belongs to an actor that has terminated, and closes its
// scopes: with one command for all, because each command lists the store.
func (r *registry) onOwnerTerminated(who *actor.PID) {
	of := r.owners.Terminated(who)
	if of == nil {
		return
	}
	pid := of.PID()
	end := &ownerEnd{End: of, upTo: r.reports.Counters.Calls, last: r.table.Serial, event: &messages.OwnerTerminated{
		Stamp: messages.Stamp{Time: time.Now(), Supervisor: r.cfg.Name}, Owner: pid.Address + "/" + pid.Id,
	}}
	r.jobs.Do(&jobs.Job{Step: func() (more bool) {
		for n := 0; n < contract.WalkStep && end.More(); n++ {
			call, scope, closes := r.owners.Next(end.End)
			switch {
			case call != nil:
				r.cancelOwned(end, call)
			case closes:
				r.endScope(end, scope)
			}
		}
		if !end.More() {
			r.ownerEnds(end)
		}
		return end.More()
	}})
}

// ownerEnds publishes that an owner has terminated, and proceeds with the command that closes its scopes.
func (r *registry) ownerEnds(end *ownerEnd) {
	if len(end.event.Scopes) > 0 || end.event.Cancelled > 0 {
		r.jobs.Await(func() (then func()) {
			slices.Sort(end.event.Scopes) // they may be many
			return func() { r.reports.Publish(end.event) }
		})
	}
	if end.closes != nil {
		r.closer.ScopesDrained(end.closes)
	}
}

// cancelOwned cancels a call whose owner has terminated, if it has no reply.
func (r *registry) cancelOwned(end *ownerEnd, call *owners.Call) {
	cancel := call.Cancel
	if cancel == nil {
		cancel = func() { calls.Cancel(call.Call, refusal.OwnerTerminated) }
	}
	end.event.Cancelled++
	r.cancellations.Add(call.Key, cancel)
}

// endScope cancels the calls of a scope whose owner has terminated, and closes its sessions.
func (r *registry) endScope(end *ownerEnd, scope string) {
	end.event.Scopes = append(end.event.Scopes, scope)
	end.event.Cancelled += r.cancelScope(scope, end.upTo, refusal.OwnerTerminated)
	if r.table.Stopping { // all is being closed
		return
	}
	if end.closes == nil {
		match := func(k messages.Key) bool { return end.Owned(k.Scope) }
		end.closes = r.closer.Begin(closing.Order{Match: match, Scopes: end.Scopes(), ByScope: true, UpTo: end.last}, nil)
	}
	r.closer.EndScope(end.closes, scope)
}
