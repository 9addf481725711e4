// Package owners keeps which actor each scope and call belongs to, and how scopes are bound. It says what ends with an
// actor; the registry ends it.
package owners

import (
	"cmp"
	"fmt"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/ring"
	"github.com/mcpactor/mcpactor/messages"
)

// MaxUnowned is how many scopes may be bound without an owner: nothing but the end of the handler or of the
// subscriber, or another Bind, ends such a binding.
const MaxUnowned = 1 << 16

// Book has the bindings of scopes, and the actors that scopes and calls belong to.
type Book struct {
	decided  []Decision                // and not yet returned
	bindings map[string]*messages.Bind // by scope
	all      map[name]*holder
	unowned  int          // bindings without an owner
	orphans  []*heldScope // those of unowned whose holder has terminated, the oldest first
}

// Decision is what follows from what the book was told. One of Watch, Unwatch and Unbound is set.
type Decision struct {
	Watch   *actor.PID     // is to be watched from now on
	Unwatch *actor.PID     // or not any longer
	Unbound *messages.Bind // the binding that Scope had until now
	Scope   string
}

// name identifies the actor of a PID.
type name struct{ address, id string }

// nameOf returns the name of the actor of a PID.
func nameOf(pid *actor.PID) name { return name{pid.Address, pid.Id} }

// holder is an actor that scopes or calls belong to, or that is the handler or the subscriber of scopes without
// an owner. It is watched once, for as long as there are any.
type holder struct {
	pid    *actor.PID
	scopes map[string]*heldScope    // whose bindings end with it
	order  ring.Ring[*heldScope]    // the same, in the order in which they were bound, without those that were ended
	calls  map[*contract.Call]*Call // that name it, and have no reply
	asked  ring.Ring[*Call]         // the same, in the order in which they came
}

// heldScope is a scope whose binding ends with an actor.
type heldScope struct {
	scope string
	owned bool           // it belongs to the actor, which is not only its handler or subscriber
	bind  *messages.Bind // the binding
	node  ring.Node[*heldScope]
}

// Call is a call that has an owner.
type Call struct {
	*contract.Call
	Cancel func() // cancels it if interceptors have it, or is nil
	node   ring.Node[*Call]
}

// New returns a book without any binding.
func New() *Book {
	return &Book{bindings: map[string]*messages.Bind{}, all: map[name]*holder{}}
}

// Decided returns what was decided since it was last asked, in order.
func (b *Book) Decided() (decided []Decision) {
	decided, b.decided = b.decided, nil
	return decided
}

// decide notes a decision.
func (b *Book) decide(d Decision) { b.decided = append(b.decided, d) }

// Bindings returns how many scopes are bound.
func (b *Book) Bindings() int { return len(b.bindings) }

// Calls returns how many calls have owners.
func (b *Book) Calls() (n int) {
	for _, o := range b.all {
		n += len(o.calls)
	}
	return n
}

// unbound is the binding of a scope that has none.
var unbound = new(messages.Bind)

// Binding returns the binding of a scope, which is not nil.
func (b *Book) Binding(scope string) *messages.Bind { return cmp.Or(b.bindings[scope], unbound) }

// holderOf returns the actor whose end ends a binding, or nil for a Bind that only removes one.
func holderOf(bind *messages.Bind) *actor.PID {
	return cmp.Or(bind.Owner, bind.Handler, bind.Subscriber)
}

// Bind binds a scope, or removes its binding. It returns the failure of a command that cannot do what it says, or nil. The
// capabilities are those of a scope that declares none.
func (b *Book) Bind(scope string, cmd *messages.Bind, capabilities *mcp.ClientCapabilities) *messages.Failure {
	if f := b.refusal(cmd, b.bindings[scope], cmp.Or(cmd.Capabilities, capabilities)); f != nil {
		return f
	}
	holder := holderOf(cmd)
	if holder != nil {
		b.holder(holder).hold(&heldScope{scope: scope, owned: cmd.Owner != nil, bind: cmd})
	}
	b.unbind(scope, holder)
	if holder != nil {
		b.bindings[scope] = cmd
		if cmd.Owner == nil {
			b.unowned++
		}
	}
	return nil
}

// refusal returns the failure of a Bind that cannot do what it says, or nil.
func (b *Book) refusal(cmd, previous *messages.Bind, can *mcp.ClientCapabilities) *messages.Failure {
	switch {
	case cmd.Capabilities != nil && holderOf(cmd) == nil:
		return messages.NewFailure(cmd, messages.CodeInvalid, "capabilities: the binding belongs to nobody: set Owner, Handler or Subscriber")
	case cmd.Introduction != nil && holderOf(cmd) == nil:
		return messages.NewFailure(cmd, messages.CodeInvalid, "introduction: the binding belongs to nobody: set Owner, Handler or Subscriber")
	case cmd.Handler != nil && (can == nil || declareNothing(can)):
		return messages.NewFailure(cmd, messages.CodeInvalid,
			"handler: no server would ask it, because no capability is declared: set Capabilities, such as elicitation, here or in the configuration, or Handler of the configuration")
	case holderOf(cmd) == nil || cmd.Owner != nil || previous != nil && previous.Owner == nil:
		return nil
	case b.unowned >= MaxUnowned && !b.forgetOrphan():
		return messages.NewFailure(cmd, messages.CodeBusy,
			fmt.Sprintf("%d scopes are bound to handlers or subscribers without owners: name an owner, or remove bindings", b.unowned))
	}
	return nil
}

// declareNothing reports whether capabilities let servers ask for nothing. Unlike identity.OfCapabilities, it runs no code of
// the user.
func declareNothing(can *mcp.ClientCapabilities) bool {
	return can.RootsV2 == nil && can.Sampling == nil && can.Elicitation == nil && len(can.Extensions)+len(can.Experimental) == 0
}

// unbind removes the binding of a scope, if there is one. next is the actor that the scope belongs to
// from now on, or nil.
func (b *Book) unbind(scope string, next *actor.PID) {
	previous := b.bindings[scope]
	if previous == nil {
		return
	}
	delete(b.bindings, scope)
	b.decide(Decision{Unbound: previous, Scope: scope})
	if previous.Owner == nil {
		b.unowned--
	}
	held := nameOf(holderOf(previous))
	if o := b.all[held]; o != nil && (next == nil || nameOf(next) != held) {
		o.release(scope)
		b.free(o)
	}
}

// forgetOrphan removes a binding without an owner whose holder has terminated. It reports whether there
// was one.
func (b *Book) forgetOrphan() bool {
	for len(b.orphans) > 0 {
		first := b.orphans[0]
		b.orphans = b.orphans[1:]
		if b.bindings[first.scope] == first.bind {
			b.unbind(first.scope, nil)
			return true
		}
	}
	return false
}

// hold notes that the binding of a scope ends with the actor.
func (o *holder) hold(held *heldScope) {
	o.release(held.scope)
	o.scopes[held.scope] = held
	o.order.Push(&held.node, held)
}

// release notes that the binding of a scope does not end with the actor.
func (o *holder) release(scope string) {
	if held := o.scopes[scope]; held != nil {
		o.order.Remove(&held.node)
		delete(o.scopes, scope)
	}
}

// owns reports whether a scope belongs to the actor.
func (o *holder) owns(scope string) bool {
	held := o.scopes[scope]
	return held != nil && held.owned
}

// holder returns the holder with a PID, which is watched from now on.
func (b *Book) holder(pid *actor.PID) *holder {
	o := b.all[nameOf(pid)]
	if o == nil {
		o = &holder{pid: pid, scopes: map[string]*heldScope{}, calls: map[*contract.Call]*Call{}}
		b.all[nameOf(pid)] = o
		b.decide(Decision{Watch: pid})
	}
	return o
}

// free ends the watching of a holder that nothing belongs to any longer.
func (b *Book) free(o *holder) {
	if len(o.scopes)+len(o.calls) == 0 {
		delete(b.all, nameOf(o.pid))
		b.decide(Decision{Unwatch: o.pid})
	}
}

// Clear forgets all, and ends the watching of all holders, because each watched actor keeps the PIDs of
// its watchers.
func (b *Book) Clear() {
	decided := b.decided
	for _, o := range b.all {
		decided = append(decided, Decision{Unwatch: o.pid})
	}
	*b = *New()
	b.decided = decided
}

// Accepted notes that a call belongs to its owner, if it has one. cancel cancels a call that interceptors have, or is nil.
func (b *Book) Accepted(k *contract.Call, cancel func()) {
	pid := k.Op.Head().Owner
	if pid == nil {
		return
	}
	o := b.holder(pid)
	o.forget(k)
	owned := &Call{Call: k, Cancel: cancel}
	o.calls[k] = owned
	o.asked.Push(&owned.node, owned)
}

// Answered notes that a call has its reply.
func (b *Book) Answered(k *contract.Call) {
	pid := k.Op.Head().Owner
	if pid == nil {
		return
	}
	o := b.all[nameOf(pid)]
	if o != nil && o.forget(k) {
		b.free(o)
	}
}

// forget notes that a call does not belong to the owner any more. It reports whether it did.
func (o *holder) forget(k *contract.Call) bool {
	owned := o.calls[k]
	if owned == nil {
		return false
	}
	delete(o.calls, k)
	o.asked.Remove(&owned.node)
	return true
}
