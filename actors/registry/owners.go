package registry

import (
	"cmp"
	"container/list"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/actors/internal/catalogue"
	"github.com/mcpactor/mcpactor/actors/internal/closing"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/refusal"
	"github.com/mcpactor/mcpactor/actors/internal/ring"
	"github.com/mcpactor/mcpactor/messages"
)

// maxUnowned is how many scopes may be bound without an owner: nothing but the end of the handler or of the
// subscriber, or another Bind, ends such a binding.
const maxUnowned = 1 << 16

// owners are the bindings of scopes, and the actors that scopes and calls belong to.
type owners struct {
	bindings map[string]*messages.Bind // by scope
	all      map[ownerName]*owner
	unowned  int          // bindings without an owner
	orphans  []*heldScope // those of unowned whose holder has terminated, the oldest first
}

// ownerName identifies the actor of a PID.
type ownerName struct{ address, id string }

// nameOf returns the name of the actor of a PID.
func nameOf(pid *actor.PID) ownerName { return ownerName{pid.Address, pid.Id} }

// owner is an actor that scopes or calls belong to, or that is the handler or the subscriber of scopes without
// an owner. The registry watches it once, for as long as there are any.
type owner struct {
	pid    *actor.PID
	scopes map[string]*list.Element      // whose bindings end with it
	order  list.List                     // of *heldScope: the same, in the order in which they were bound
	calls  map[*contract.Call]*ownedCall // that name it, and have no reply
	asked  ring.Ring[*ownedCall]         // the same, in the order in which they came
}

// heldScope is a scope whose binding ends with an actor.
type heldScope struct {
	scope string
	owned bool           // it belongs to the actor, which is not only its handler or subscriber
	bind  *messages.Bind // the binding
}

// ownedCall is what the registry knows of a call that has an owner.
type ownedCall struct {
	call   *contract.Call
	cancel func() // cancels a call that interceptors have, or is nil
	node   ring.Node[*ownedCall]
}

// newOwners returns owners without any binding.
func newOwners() owners {
	return owners{bindings: map[string]*messages.Bind{}, all: map[ownerName]*owner{}}
}

// holderOf returns the actor whose end ends a binding, or nil for a Bind that only removes one.
func holderOf(bind *messages.Bind) *actor.PID {
	return cmp.Or(bind.Owner, bind.Handler, bind.Subscriber)
}

// onBind binds a scope, or removes its binding.
func (r *registry) onBind(cmd *messages.Bind, from *actor.PID) {
	key := messages.Key{Scope: cmd.Scope}.Normal()
	if f := r.bindRejection(cmd, r.owners.bindings[key.Scope]); f != nil {
		r.respond(from, f)
		return
	}
	if holder := holderOf(cmd); holder != nil {
		r.watchOwner(holder).hold(&heldScope{key.Scope, cmd.Owner != nil, cmd})
	}
	r.unbind(key.Scope, holderOf(cmd))
	if holderOf(cmd) != nil {
		r.owners.bindings[key.Scope] = cmd
		if cmd.Owner == nil {
			r.owners.unowned++
		}
	}
	r.separate(key.Scope, cmd)
	for _, reg := range r.table.OfScope(key.Scope) {
		reg.Send(&contract.ScopeBound{Bind: cmd})
	}
	r.respond(from, &messages.Bound{ID: cmd.ID, Scope: key.Scope})
}

// separate notes that a scope is bound, or is not any more. A session whose server may have asked a handler of the
// scope has lists of its own until it ends.
func (r *registry) separate(scope string, bind *messages.Bind) {
	own := bind.Handler != nil || bind.Subscriber != nil
	if !own && bind.Capabilities == nil {
		return
	}
	var sessions []*catalogue.Session
	for _, reg := range r.table.OfScope(scope) {
		reg.OwnLists = reg.OwnLists || own
		sessions = append(sessions, &reg.Lists)
	}
	r.catalogue.Separate(time.Now(), scope, sessions...)
}

// declareNothing reports whether capabilities let servers ask for nothing. Unlike [mcpbridge.Declared], it runs no code of
// the user.
func declareNothing(can *mcp.ClientCapabilities) bool {
	return can.RootsV2 == nil && can.Sampling == nil && can.Elicitation == nil && len(can.Extensions)+len(can.Experimental) == 0
}

// bindRejection returns the failure of a Bind that cannot do what it says, or nil.
func (r *registry) bindRejection(cmd, previous *messages.Bind) *messages.Failure {
	switch can := cmp.Or(cmd.Capabilities, r.cfg.Capabilities); {
	case cmd.Capabilities != nil && holderOf(cmd) == nil:
		return messages.NewFailure(cmd, messages.CodeInvalid, "capabilities: the binding belongs to nobody: set Owner, Handler or Subscriber")
	case cmd.Handler != nil && (can == nil || declareNothing(can)):
		return messages.NewFailure(cmd, messages.CodeInvalid,
			"handler: no server would ask it, because no capability is declared: set Capabilities, such as elicitation, here or in the configuration, or Handler of the configuration")
	case holderOf(cmd) == nil || cmd.Owner != nil || previous != nil && previous.Owner == nil:
		return nil
	case r.owners.unowned >= maxUnowned && !r.forgetOrphan():
		return messages.NewFailure(cmd, messages.CodeBusy,
			fmt.Sprintf("%d scopes are bound to handlers or subscribers without owners: name an owner, or remove bindings", r.owners.unowned))
	}
	return nil
}

// unbind removes the binding of a scope, if there is one. next is the actor that the scope belongs to
// from now on, or nil.
func (r *registry) unbind(scope string, next *actor.PID) {
	previous := r.owners.bindings[scope]
	if previous == nil {
		return
	}
	delete(r.owners.bindings, scope)
	r.separate(scope, previous)
	if previous.Owner == nil {
		r.owners.unowned--
	}
	held := nameOf(holderOf(previous))
	if o := r.owners.all[held]; o != nil && (next == nil || nameOf(next) != held) {
		o.release(scope)
		r.releaseOwner(o)
	}
}

// forgetOrphan removes a binding without an owner whose holder has terminated. It reports whether there
// was one.
func (r *registry) forgetOrphan() bool {
	for len(r.owners.orphans) > 0 {
		first := r.owners.orphans[0]
		r.owners.orphans = r.owners.orphans[1:]
		if r.owners.bindings[first.scope] == first.bind {
			r.unbind(first.scope, nil)
			return true
		}
	}
	return false
}

// hold notes that the binding of a scope ends with the actor.
func (o *owner) hold(held *heldScope) {
	o.release(held.scope)
	o.scopes[held.scope] = o.order.PushBack(held)
}

// release notes that the binding of a scope does not end with the actor.
func (o *owner) release(scope string) {
	if at := o.scopes[scope]; at != nil {
		o.order.Remove(at)
		delete(o.scopes, scope)
	}
}

// unbound is the binding of a scope that has none.
var unbound = new(messages.Bind)

// bindingOf returns the binding of a scope, which is not nil.
func (s *owners) bindingOf(scope string) *messages.Bind {
	return cmp.Or(s.bindings[scope], unbound)
}

// watchOwner returns an owner, which it watches if it does not yet.
func (r *registry) watchOwner(pid *actor.PID) *owner {
	o := r.owners.all[nameOf(pid)]
	if o == nil {
		o = &owner{pid: pid, scopes: map[string]*list.Element{}, calls: map[*contract.Call]*ownedCall{}}
		r.owners.all[nameOf(pid)] = o
		r.cfg.Post.Watch(pid, r.self)
	}
	return o
}

// releaseOwner ends the watching of an owner that nothing belongs to any longer.
func (r *registry) releaseOwner(o *owner) {
	if len(o.scopes)+len(o.calls) == 0 {
		delete(r.owners.all, nameOf(o.pid))
		r.cfg.Post.Unwatch(o.pid, r.self)
	}
}

// releaseOwners ends the watching of all owners, because each watched actor keeps the PIDs of
// its watchers.
func (r *registry) releaseOwners() {
	for _, o := range r.owners.all {
		r.cfg.Post.Unwatch(o.pid, r.self)
	}
	r.owners = newOwners()
}

// own notes that a call belongs to its owner, if it has one. cancel cancels a call that interceptors have, or is nil.
func (r *registry) own(k *contract.Call, cancel func()) {
	pid := k.Op.Head().Owner
	if pid == nil {
		return
	}
	o := r.watchOwner(pid)
	o.forget(k)
	owned := &ownedCall{call: k, cancel: cancel}
	o.calls[k] = owned
	o.asked.Push(&owned.node, owned)
}

// forget notes that a call does not belong to the owner any more. It reports whether it did.
func (o *owner) forget(k *contract.Call) bool {
	owned := o.calls[k]
	if owned == nil {
		return false
	}
	delete(o.calls, k)
	o.asked.Remove(&owned.node)
	return true
}

// disown notes that a call has its reply.
func (r *registry) disown(k *contract.Call) {
	pid := k.Op.Head().Owner
	if pid == nil {
		return
	}
	o := r.owners.all[nameOf(pid)]
	if o != nil && o.forget(k) {
		r.releaseOwner(o)
	}
}

// ownerEnd is the end of an owner, whose calls are cancelled and whose scopes are closed in steps.
type ownerEnd struct {
	of      *owner
	upTo    uint64        // the serial of the last call before the end
	last    uint64        // that of the last session
	next    *list.Element // in the order of the scopes
	event   *messages.OwnerTerminated
	closing *closing.Command // of the scopes, or nil
}

// onOwnerTerminated cancels what belongs to an actor that has terminated, and closes its
// scopes: with one command for all, because each command lists the store.
func (r *registry) onOwnerTerminated(who *actor.PID) {
	o := r.owners.all[nameOf(who)]
	if o == nil {
		return
	}
	delete(r.owners.all, nameOf(who))
	end := &ownerEnd{of: o, upTo: r.counters.Calls, last: r.table.Serial, next: o.order.Front(), event: &messages.OwnerTerminated{
		Stamp: messages.Stamp{Time: time.Now(), Supervisor: r.cfg.Name}, Owner: o.pid.Address + "/" + o.pid.Id,
	}}
	r.do(&job{step: func() bool { return r.continueEnd(end) }})
}

// continueEnd takes the next step of the end of an owner. It reports whether there are more.
func (r *registry) continueEnd(end *ownerEnd) (more bool) {
	o := end.of
	n := 0
	for owned := range o.asked.All() {
		if n++; n > contract.WalkStep {
			break
		}
		k := owned.call
		o.forget(k)
		if at := o.scopes[k.Key.Scope]; at != nil && at.Value.(*heldScope).owned {
			continue // it is cancelled with its scope
		}
		r.cancelOwned(end, owned)
	}
	for ; len(o.calls) == 0 && end.next != nil && n < contract.WalkStep; n++ {
		held := end.next.Value.(*heldScope)
		end.next = end.next.Next()
		r.endBinding(end, held)
	}
	if len(o.calls) > 0 || end.next != nil {
		return true
	}
	if len(end.event.Scopes) > 0 || end.event.Cancelled > 0 {
		r.pending++
		r.cfg.Async(r.mailbox, func() any { // it may be long
			slices.Sort(end.event.Scopes)
			return &ownerEnded{end.event}
		})
	}
	if end.closing != nil {
		end.closing.Scopes = false
		r.continueClose(end.closing)
	}
	return false
}

// ownerEnded brings the event of the end of an owner.
type ownerEnded struct{ event *messages.OwnerTerminated }

// onOwnerEnded publishes the end of an owner.
func (r *registry) onOwnerEnded(msg *ownerEnded) {
	r.pending--
	r.publish(msg.event)
	r.stopIfEmpty()
}

// cancelOwned cancels a call whose owner has terminated, if it has no reply.
func (r *registry) cancelOwned(end *ownerEnd, owned *ownedCall) {
	k, cancel := owned.call, owned.cancel
	if cancel == nil {
		cancel = func() { cancelCall(k, refusal.OwnerTerminated) }
	}
	end.event.Cancelled++
	r.cancellations.add(k.Key, cancel)
}

// endBinding ends the binding of a scope. If the actor that has terminated was its owner, its calls are
// cancelled, and its sessions are closed. The scope may have another binding by now.
func (r *registry) endBinding(end *ownerEnd, held *heldScope) {
	scope := held.scope
	if !held.owned { // the requests of its servers are refused, until there is another Bind
		if r.owners.orphans = append(r.owners.orphans, held); len(r.owners.orphans) > maxUnowned {
			r.forgetOrphan()
		}
		return
	}
	if r.owners.bindings[scope] == held.bind {
		r.unbind(scope, nil)
	}
	end.event.Scopes = append(end.event.Scopes, scope)
	end.event.Cancelled += r.cancelScope(scope, end.upTo, refusal.OwnerTerminated)
	if r.table.Stopping { // all is being closed
		return
	}
	if end.closing == nil {
		match := func(k messages.Key) bool {
			at := end.of.scopes[k.Scope]
			return at != nil && at.Value.(*heldScope).owned
		}
		end.closing = r.beginClose("", nil, selection{match: match, servers: noServer}, contract.Drain{})
		end.closing.Scopes, end.closing.UpTo = true, end.last
		if all := end.of.scopes; len(all) <= contract.WalkStep {
			r.closings.Narrow(end.closing, slices.Sorted(maps.Keys(all))...)
		}
	}
	for _, reg := range r.table.OfScope(scope) {
		if reg.Serial <= end.closing.UpTo {
			r.drainFor(end.closing, reg)
		}
	}
}
