package node

import (
	"cmp"
	"slices"
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

// onBind binds a scope on all members: its sessions may live on any of them.
func (n *node) onBind(c actor.Context, cmd *messages.Bind) {
	if (messages.Key{Scope: cmd.Scope}).Normal().Validate() != nil {
		c.Forward(n.cfg.Supervisor)
		return
	}
	n.watch(cmd)
	n.gather(c, cmd, controlTime)
}

// scopeOf returns the scope of a Bind.
func scopeOf(bind *messages.Bind) string { return messages.Key{Scope: bind.Scope}.Normal().Scope }

// removes reports whether a Bind only removes a binding.
func removes(bind *messages.Bind) bool {
	return bind.Owner == nil && bind.Handler == nil && bind.Subscriber == nil
}

// addBinding notes a Bind of a caller here, and returns its version.
func (n *node) addBinding(bind *messages.Bind) bindVersion {
	n.bindTime = max(n.bindTime+1, time.Now().UnixMicro())
	b := &binding{version: bindVersion{n.bindTime, n.cfg.Name}, bind: bind, cameAt: time.Now(), previous: n.bindings[scopeOf(bind)]}
	n.bindings[scopeOf(bind)] = b
	return b.version
}

// settleBinding notes what the own supervisor has replied to a Bind. One that it has refused is forgotten: a
// supervisor bounds the bindings, and so those of a member are bounded.
func (n *node) settleBinding(cmd messages.Command, reply any) {
	bind, binds := cmd.(*messages.Bind)
	if !binds {
		return
	}
	scope := scopeOf(bind)
	last := n.bindings[scope]
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
	if n.bindings[scope] = last; last == nil {
		delete(n.bindings, scope)
	}
}

// acceptBinding notes a Bind of another member. It reports false if the scope has a later one. The same
// one may come again: from its member that was lost before, or as a removal from others that have lost its
// member.
func (n *node) acceptBinding(from *peer, bind *messages.Bind, version bindVersion) bool {
	n.bindTime = max(n.bindTime, version.Time)
	scope := scopeOf(bind)
	known := n.bindings[scope]
	if known != nil {
		if order := version.compare(known.version); order < 0 || order == 0 && removes(bind) {
			return false
		}
	}
	n.bindings[scope] = &binding{version: version, bind: bind, from: from, cameAt: time.Now(), previous: known}
	return true
}

// hasEnded reports whether a binding was removed, or its owner has terminated, or its member is lost.
func (n *node) hasEnded(b *binding) bool {
	if b.bind.Owner != nil && !n.isThere(b.bind.Owner) {
		return true
	}
	return removes(b.bind) || b.from != nil && !b.from.alive()
}

// sendBindings tells a member that has joined of the bindings of callers here, and of those that have
// ended, unless the member of their caller tells it.
func (n *node) sendBindings(p *peer) {
	var ended []endedBinding
	for scope, b := range inOrder(n.bindings) {
		switch {
		case b.from == nil && !n.hasEnded(b):
			n.sendBind(p, b)
		case b.from == nil || !b.from.alive():
			ended = append(ended, endedBinding{scope, b.version})
		}
	}
	n.sendEnded(p, ended)
}

// spreadBindings tells the other members of the last Binds of a member that is lost: they may not have got
// them, and have earlier ones.
func (n *node) spreadBindings(lost *peer) {
	var ended []endedBinding
	for scope, b := range inOrder(n.bindings) {
		if b.from == lost && time.Since(b.cameAt) < spreadFor {
			ended = append(ended, endedBinding{scope, b.version})
		}
	}
	for _, p := range inOrder(n.peers) {
		if p != lost {
			n.sendEnded(p, ended)
		}
	}
}

// sendBind tells a member of a binding of a caller here.
func (n *node) sendBind(p *peer, b *binding) {
	typ, body, err := wire.Encode(b.bind, refs{})
	if err != nil {
		n.cfg.Logger.Error().Err(err).Msg("binding cannot be encoded")
		return
	}
	n.lastID++
	p.post(n.lastID, &resent{history{Binding: b.version}, typ, body})
	n.introduce(p, b.bind)
}

// sendEnded tells a member of bindings that have ended.
func (n *node) sendEnded(p *peer, ended []endedBinding) {
	for part := range slices.Chunk(ended, maxEnded) {
		p.post(0, &bindingsEnded{part})
	}
}

// onBindingsEnded removes the bindings that are older than those that have ended.
func (n *node) onBindingsEnded(from *peer, msg *bindingsEnded) {
	for _, ended := range msg.Bindings {
		bind := &messages.Bind{Scope: ended.Scope}
		if n.acceptBinding(from, bind, ended.Version) {
			n.bindings[ended.Scope].previous = nil // the supervisor does not refuse it
			n.toSupervisor(bind)
		}
	}
}

// sweepBindings forgets the bindings that have ended a while ago.
func (n *node) sweepBindings(now time.Time) {
	if now.Sub(n.sweptAt) < endedFor/10 {
		return
	}
	n.sweptAt = now
	for scope, b := range n.bindings {
		switch {
		case !n.hasEnded(b):
		case b.endedAt.IsZero():
			b.endedAt = now
		case now.Sub(b.endedAt) > endedFor:
			delete(n.bindings, scope)
		}
	}
}
