package node

import (
	"cmp"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// binding is the last Bind of a scope that a member knows. It is kept for a while after it has ended: a
// member that was away may send an earlier one.
type binding struct {
	version bindVersion
	bind    *messages.Bind
	from    *peer // that has sent it, or nil if its caller is here
	cameAt  time.Time
	endedAt time.Time // when it was found to have ended

	previous *binding // which holds if the supervisor refuses this one; nil once it has answered
}

// bindVersion orders the Binds of a scope, so that all members keep the same one.
type bindVersion struct {
	Time   int64  `json:"time"`   // in microseconds since 1970, and later than that of all Binds that its member knew
	Member string `json:"member"` // of its caller
}

// compare says which of two versions is later.
func (v bindVersion) compare(other bindVersion) int {
	return cmp.Or(cmp.Compare(v.Time, other.Time), cmp.Compare(v.Member, other.Member))
}

// bindings are the bindings of all scopes that a member knows. They decide which Bind of a scope holds, and what other
// members need to be told. They send nothing.
type bindings struct {
	member   string                // the name of this one
	isThere  func(*actor.PID) bool // reports whether an actor here has not terminated
	of       map[string]*binding   // by scope
	lastTime int64                 // of the last Bind that is known
	sweptAt  time.Time             // when bindings were last forgotten
}

// newBindings returns the bindings of a member that knows none.
func newBindings(member string, isThere func(*actor.PID) bool) *bindings {
	return &bindings{member: member, isThere: isThere, of: map[string]*binding{}}
}

// Between nodes.
type (
	// bindingsEnded says which bindings have ended, to members that may have earlier ones.
	bindingsEnded struct {
		Bindings []endedBinding `json:"bindings"`
	}
	endedBinding struct {
		Scope   string      `json:"scope"`
		Version bindVersion `json:"version"`
	}
)

func init() { wire.Register[bindingsEnded]("bindings-ended") }

// maxEnded is how many bindings a message has.
const maxEnded = 1000

// endedFor is how long a binding that has ended is kept. After that, an earlier one of a member that was
// removed, and joins again, comes back.
const endedFor = 10 * time.Minute

// spreadFor is how long after a Bind its member may be lost before all others have got it.
const spreadFor = time.Minute

// scopeOf returns the scope of a Bind.
func scopeOf(bind *messages.Bind) string { return messages.Key{Scope: bind.Scope}.Normal().Scope }

// removes reports whether a Bind only removes a binding.
func removes(bind *messages.Bind) bool {
	return bind.Owner == nil && bind.Handler == nil && bind.Subscriber == nil
}

// add notes a Bind of a caller here, and returns its version.
func (b *bindings) add(bind *messages.Bind, now time.Time) bindVersion {
	b.lastTime = max(b.lastTime+1, now.UnixMicro())
	version := bindVersion{b.lastTime, b.member}
	b.of[scopeOf(bind)] = &binding{version: version, bind: bind, cameAt: now, previous: b.of[scopeOf(bind)]}
	return version
}

// settle notes what the own supervisor has replied to a command, if it is a Bind. One that it has refused is forgotten: a
// supervisor bounds the bindings, and so those of a member are bounded.
func (b *bindings) settle(cmd messages.Command, reply any) {
	bind, binds := cmd.(*messages.Bind)
	if !binds {
		return
	}
	scope := scopeOf(bind)
	last := b.of[scope]
	for at := &last; *at != nil; at = &(*at).previous {
		if (*at).bind != bind {
			continue
		}
		if _, accepted := reply.(*messages.Bound); accepted {
			(*at).previous = nil
		} else {
			*at = (*at).previous
		}
		break
	}
	if b.of[scope] = last; last == nil {
		delete(b.of, scope)
	}
}

// accept notes a Bind of another member. It reports false if the scope has a later one. The same
// one may come again: from its member that was lost before, or as a removal from others that have lost its
// member.
func (b *bindings) accept(from *peer, bind *messages.Bind, version bindVersion, now time.Time) bool {
	b.lastTime = max(b.lastTime, version.Time)
	known := b.of[scopeOf(bind)]
	if known != nil {
		if order := version.compare(known.version); order < 0 || order == 0 && removes(bind) {
			return false
		}
	}
	b.of[scopeOf(bind)] = &binding{version: version, bind: bind, from: from, cameAt: now, previous: known}
	return true
}

// hasEnded reports whether a binding was removed, or its owner has terminated, or its member is lost.
func (b *bindings) hasEnded(one *binding) bool {
	if one.bind.Owner != nil && !b.isThere(one.bind.Owner) {
		return true
	}
	return removes(one.bind) || one.from != nil && !one.from.alive()
}

// forNewcomer returns what a member that has joined is to be told: the bindings of callers here, and those that have
// ended, unless the member of their caller tells it.
func (b *bindings) forNewcomer() (own []*binding, ended []endedBinding) {
	for scope, one := range inOrder(b.of) {
		switch {
		case one.from == nil && !b.hasEnded(one):
			own = append(own, one)
		case one.from == nil || !one.from.alive():
			ended = append(ended, endedBinding{scope, one.version})
		}
	}
	return own, ended
}

// ofLost returns the last Binds of a member that is lost: the others may not have got them, and have earlier
// ones.
func (b *bindings) ofLost(lost *peer, now time.Time) (ended []endedBinding) {
	for scope, one := range inOrder(b.of) {
		if one.from == lost && now.Sub(one.cameAt) < spreadFor {
			ended = append(ended, endedBinding{scope, one.version})
		}
	}
	return ended
}

// end removes the bindings that are older than those that have ended, and returns the Binds that do so here.
func (b *bindings) end(from *peer, all []endedBinding, now time.Time) (removals []*messages.Bind) {
	for _, ended := range all {
		bind := &messages.Bind{Scope: ended.Scope}
		if b.accept(from, bind, ended.Version, now) {
			b.of[ended.Scope].previous = nil // the supervisor does not refuse it
			removals = append(removals, bind)
		}
	}
	return removals
}

// sweep forgets the bindings that have ended a while ago.
func (b *bindings) sweep(now time.Time) {
	if now.Sub(b.sweptAt) < endedFor/10 {
		return
	}
	b.sweptAt = now
	for scope, one := range b.of {
		switch {
		case !b.hasEnded(one):
		case one.endedAt.IsZero():
			one.endedAt = now
		case now.Sub(one.endedAt) > endedFor:
			delete(b.of, scope)
		}
	}
}
