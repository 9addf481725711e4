package node

import (
	"cmp"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
	"github.com/mcpactor/mcpactor/supervisor/cluster/internal/wire"
)

// binding is the last Bind of a scope that a member knows. It is kept for a while after it has ended: a
// member that was away may send an earlier one.
type binding struct {
	version bindVersion
	bind    *messages.Bind
	from    *peer     // the member of its caller, or nil if that is this one
	endedAt time.Time // when it was found to have ended
}

// bindVersion orders the Binds of a scope, so that all members keep the same one.
type bindVersion struct {
	Time   int64  `json:"time"`   // in microseconds since 1970, and later than that of all Binds that its member knew
	Member string `json:"member"` // of its caller
}

func (v bindVersion) compare(other bindVersion) int {
	return cmp.Or(cmp.Compare(v.Time, other.Time), cmp.Compare(v.Member, other.Member))
}

// endedFor is how long a binding that has ended is kept. After that, an earlier one of a member that was
// removed, and joins again, comes back.
const endedFor = departedFor

// onBind binds a scope on all members: its sessions may live on any of them.
func (n *node) onBind(c actor.Context, cmd *messages.Bind) {
	if (messages.Key{Scope: cmd.Scope}).Normal().Validate() != nil {
		c.Forward(n.cfg.Supervisor)
		return
	}
	n.watch(c, cmd)
	n.gather(c, cmd, controlTime)
}

// scopeOf returns the scope of a Bind.
func scopeOf(bind *messages.Bind) string { return messages.Key{Scope: bind.Scope}.Normal().Scope }

// removes reports whether a Bind only removes a binding.
func removes(bind *messages.Bind) bool { return bind.Owner == nil && bind.Handler == nil }

// addBinding notes a Bind of a caller here, and returns its version.
func (n *node) addBinding(bind *messages.Bind) bindVersion {
	n.bindTime = max(n.bindTime+1, time.Now().UnixMicro())
	b := &binding{version: bindVersion{n.bindTime, n.cfg.Name}, bind: bind}
	n.bindings[scopeOf(bind)] = b
	return b.version
}

// acceptBinding notes a Bind of another member. It reports false if the scope has a later one. The same
// one may come again: a binding after its member was lost, and a removal in place of a binding from those
// that have lost its member. Members of version 0.2 send no version: their Binds count as the last ones.
func (n *node) acceptBinding(from *peer, bind *messages.Bind, version bindVersion) bool {
	n.bindTime = max(n.bindTime, version.Time)
	scope := scopeOf(bind)
	if known := n.bindings[scope]; known != nil {
		order := version.compare(known.version)
		switch {
		case version == bindVersion{}:
			version = known.version
		case order < 0, order == 0 && removes(bind):
			return false
		}
	}
	n.bindings[scope] = &binding{version: version, bind: bind, from: from}
	return true
}

// hasEnded reports whether a binding was removed, or its owner has terminated, or its member is lost.
func (n *node) hasEnded(c actor.Context, b *binding) bool {
	return removes(b.bind) || b.bind.Owner != nil && !isThere(c, b.bind.Owner) || b.from != nil && !n.reaches(b.from)
}

// reaches reports whether messages reach a member, as far as is known, and it was not replaced.
func (n *node) reaches(p *peer) bool { return n.peers[p.ID] == p && p.alive() }

// sendBindings tells a member that has joined of the bindings of callers here, and of those that have
// ended, unless the member of their caller tells it.
func (n *node) sendBindings(c actor.Context, p *peer) {
	for scope, b := range n.bindings {
		if b.from != nil && n.reaches(b.from) || b.version == (bindVersion{}) {
			continue
		}
		bind := b.bind
		if n.hasEnded(c, b) {
			bind = &messages.Bind{Scope: scope}
		}
		typ, body, err := wire.Encode(bind, refs{})
		if err != nil {
			n.cfg.Logger.Error().Err(err).Msg("binding cannot be encoded")
			continue
		}
		n.lastID++
		n.post(c, p, n.lastID, &resent{history{Binding: b.version}, typ, body})
		n.introduce(c, p, bind)
	}
}

// sweepBindings forgets the bindings that have ended a while ago.
func (n *node) sweepBindings(c actor.Context, now time.Time) {
	if now.Sub(n.sweptAt) < endedFor/10 {
		return
	}
	n.sweptAt = now
	for scope, b := range n.bindings {
		switch {
		case !n.hasEnded(c, b):
		case b.endedAt.IsZero():
			b.endedAt = now
		case now.Sub(b.endedAt) > endedFor:
			delete(n.bindings, scope)
		}
	}
}
