package actors

import (
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// owners are the bindings of scopes, and the actors that scopes and calls belong to.
type owners struct {
	bindings map[string]*messages.Bind // by scope
	all      map[ownerName]*owner
}

// ownerName identifies the actor of a PID.
type ownerName struct{ address, id string }

// nameOf returns the name of the actor of a PID.
func nameOf(pid *actor.PID) ownerName { return ownerName{pid.Address, pid.Id} }

// owner is an actor that scopes or calls belong to. The registry watches it once, for as long
// as there are any.
type owner struct {
	pid    *actor.PID
	scopes map[string]struct{} // that are bound to it
	calls  map[*call]ownedCall // that name it, and have no reply
}

// ownedCall is what the registry knows of a call that has an owner.
type ownedCall struct {
	session *registration       // that has the call, or nil
	cancel  func(actor.Context) // cancels a call that interceptors have, or is nil
}

// ownerTerminated is the detail of the failure of a call whose owner has terminated.
const ownerTerminated = "its owner has terminated"

// newOwners returns owners without any binding.
func newOwners() owners {
	return owners{bindings: map[string]*messages.Bind{}, all: map[ownerName]*owner{}}
}

// onBind binds a scope, or removes its binding.
func (r *registry) onBind(c actor.Context, cmd *messages.Bind) {
	key := messages.Key{Scope: cmd.Scope}.Normal()
	if !r.isValid(c, cmd, key.Validate()) || !r.isRunning(c, cmd) {
		return
	}
	previous := r.owners.bindings[key.Scope]
	if cmd.Owner != nil {
		r.watchOwner(c, cmd.Owner).scopes[key.Scope] = struct{}{}
	}
	if previous != nil && previous.Owner != nil && (cmd.Owner == nil || nameOf(previous.Owner) != nameOf(cmd.Owner)) {
		o := r.owners.all[nameOf(previous.Owner)]
		delete(o.scopes, key.Scope)
		r.releaseOwner(c, o)
	}
	delete(r.owners.bindings, key.Scope)
	if cmd.Owner != nil || cmd.Handler != nil {
		r.owners.bindings[key.Scope] = cmd
	}
	for _, reg := range r.index.ofScope(key.Scope) {
		c.Send(reg.pid, &handlerBound{cmd.Handler})
	}
	r.respond(c, &messages.Bound{ID: cmd.ID, Scope: key.Scope})
}

// handlerOf returns the handler of a scope, or nil.
func (s *owners) handlerOf(scope string) *actor.PID {
	if bind := s.bindings[scope]; bind != nil {
		return bind.Handler
	}
	return nil
}

// watchOwner returns an owner, which it watches if it does not yet.
func (r *registry) watchOwner(c actor.Context, pid *actor.PID) *owner {
	o := r.owners.all[nameOf(pid)]
	if o == nil {
		o = &owner{pid: pid, scopes: map[string]struct{}{}, calls: map[*call]ownedCall{}}
		r.owners.all[nameOf(pid)] = o
		c.Watch(pid)
	}
	return o
}

// releaseOwner ends the watching of an owner that nothing belongs to any longer.
func (r *registry) releaseOwner(c actor.Context, o *owner) {
	if len(o.scopes)+len(o.calls) == 0 {
		delete(r.owners.all, nameOf(o.pid))
		c.Unwatch(o.pid)
	}
}

// releaseOwners ends the watching of all owners, because each watched actor keeps the PIDs of
// its watchers.
func (r *registry) releaseOwners(c actor.Context) {
	for _, o := range r.owners.all {
		c.Unwatch(o.pid)
	}
	r.owners = newOwners()
}

// orphaned returns the rejection of a call whose owner is known to have terminated, or nil.
func (r *registry) orphaned(c actor.Context, k *call) *messages.Failure {
	if pid := k.op.Head().Owner; pid != nil {
		if _, there := c.ActorSystem().ProcessRegistry.Get(pid); !there {
			return k.failure(messages.CodeCancelled, ownerTerminated)
		}
	}
	return nil
}

// own notes that a call belongs to its owner, if it has one.
func (r *registry) own(c actor.Context, k *call, owned ownedCall) {
	if pid := k.op.Head().Owner; pid != nil {
		r.watchOwner(c, pid).calls[k] = owned
	}
}

// disown notes that a call has its reply.
func (r *registry) disown(c actor.Context, k *call) {
	pid := k.op.Head().Owner
	if pid == nil {
		return
	}
	o := r.owners.all[nameOf(pid)]
	if o == nil {
		return
	}
	if _, mine := o.calls[k]; mine {
		delete(o.calls, k)
		r.releaseOwner(c, o)
	}
}

// disownAll notes that a session, which other code has stopped, has answered its calls.
func (r *registry) disownAll(c actor.Context, reg *registration) {
	for _, o := range r.owners.all {
		for k, owned := range o.calls {
			if owned.session == reg {
				r.disown(c, k)
			}
		}
	}
}

// onOwnerTerminated cancels what belongs to an actor that has terminated, and closes its
// scopes.
func (r *registry) onOwnerTerminated(c actor.Context, who *actor.PID) {
	o := r.owners.all[nameOf(who)]
	if o == nil {
		return
	}
	delete(r.owners.all, nameOf(who))
	event := &messages.OwnerTerminated{
		Stamp: messages.Stamp{Time: time.Now(), Supervisor: r.cfg.Name}, Owner: o.pid.Address + "/" + o.pid.Id, Scopes: slices.Sorted(maps.Keys(o.scopes)),
	}
	for k, owned := range o.calls {
		if _, bound := o.scopes[k.key.Scope]; bound {
			continue // it is cancelled with its scope
		}
		event.Cancelled++
		cancel := owned.cancel
		if cancel == nil {
			cancel = func(c actor.Context) { r.tell(c, k.key, &cancelCalls{call: k, detail: ownerTerminated}) }
		}
		r.cancellations.add(c, queuedCancel{cancel: cancel})
	}
	for _, scope := range event.Scopes {
		delete(r.owners.bindings, scope)
		event.Cancelled += r.cancelScope(c, scope, ownerTerminated)
	}
	r.publish(event)
	if r.stopping { // all is being closed
		return
	}
	r.closeScopes(c, o.scopes)
}

// closeScopes closes the sessions of scopes as by [messages.CloseScope], with one command for all:
// each command lists the store.
func (r *registry) closeScopes(c actor.Context, scopes map[string]struct{}) {
	if len(scopes) == 0 {
		return
	}
	match := func(k messages.Key) bool {
		_, its := scopes[k.Scope]
		return its
	}
	closing := r.newCloseCommand(c, &messages.CloseScope{}, match, drain{})
	for scope := range scopes {
		for _, reg := range r.index.ofScope(scope) {
			r.drainFor(c, closing, reg)
		}
	}
	r.continueClose(c, closing)
}

// cancelScope cancels the calls of a scope on all servers, and returns how many had no reply.
func (r *registry) cancelScope(c actor.Context, scope, detail string) (count int) {
	msg := &cancelCalls{all: true, upTo: r.counters.Calls, detail: detail}
	for _, reg := range r.index.ofScope(scope) {
		count += reg.outstanding
		c.Send(reg.pid, msg)
		if reg.order.evict {
			r.entries[reg.key].cancelled.add(msg, reg.limits.MaxInFlight+reg.limits.MaxWaiting)
		}
	}
	if r.cancelIntercepted != nil {
		count += r.cancelIntercepted(c, scope, detail)
	}
	return count
}
