package owners

import (
	"maps"
	"slices"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
)

// End is the end of an owner: its calls are cancelled, then its scopes are closed.
type End struct{ of *holder }

// Terminated notes that an actor has terminated. It returns the end of what belongs to it, or nil if nothing does.
func (b *Book) Terminated(who *actor.PID) *End {
	o := b.all[nameOf(who)]
	if o == nil {
		return nil
	}
	delete(b.all, nameOf(who))
	return &End{o}
}

// PID returns the PID of the actor that has terminated.
func (e *End) PID() *actor.PID { return e.of.pid }

// More reports whether there is more to end.
func (e *End) More() bool { return len(e.of.calls) > 0 || e.of.order.Count > 0 }

// Next ends one thing that belonged to the actor. It returns a call that is to be cancelled, or a scope that is to be
// closed with its calls, or neither.
func (b *Book) Next(e *End) (call *Call, scope string, closes bool) {
	o := e.of
	if len(o.calls) > 0 {
		owned := o.asked.First()
		o.forget(owned.Call)
		if o.owns(owned.Key.Scope) {
			return nil, "", false // it is cancelled with its scope
		}
		return owned, "", false
	}
	held := o.order.First()
	o.order.Remove(&held.node)
	if !held.owned { // the requests of its servers are refused, until there is another Bind
		if b.orphans = append(b.orphans, held); len(b.orphans) > MaxUnowned {
			b.forgetOrphan()
		}
		return nil, "", false
	}
	if b.bindings[held.scope] == held.bind { // it may have another binding by now
		b.unbind(held.scope, nil)
	}
	return nil, held.scope, true
}

// Owned reports whether a scope belonged to the actor.
func (e *End) Owned(scope string) bool { return e.of.owns(scope) }

// Scopes returns the scopes that belonged to the actor, or that it only held, in order; nil if they are more than one step may
// handle.
func (e *End) Scopes() []string {
	if len(e.of.scopes) > contract.WalkStep {
		return nil
	}
	return slices.Sorted(maps.Keys(e.of.scopes))
}
