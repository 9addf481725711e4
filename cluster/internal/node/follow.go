package node

import (
	"time"

	"github.com/mcpactor/mcpactor/cluster/internal/view"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// What follows from the membership, for all parts.

// onJoined begins: others can be reached.
func (n *node) onJoined(net Network) {
	if n.leaves() {
		return
	}
	n.members.net = net
	n.members.beginIncarnation()
}

// begins begins the shards of an incarnation.
func (n *node) begins(id string) { n.shards.beginIncarnation(id) }

// viewed takes the next view: shards that have moved are released, and those that have come are served once all others have
// ceded them.
func (n *node) viewed() {
	if n.leaving.remains && len(n.members.keeper.View().Members) == 1 { // it closes what is here: there is nobody to whom it could be left
		return
	}
	keep := n.cfg.KeepOpen && (!n.leaving.isLast() || n.cfg.LeaveOpen) // otherwise the last member closes its sessions
	n.shards.takeView(n.members.keeper.View(), keep)
	n.beginShards()
	n.members.beat() // the others wait for what this member holds
	n.routing.routeAll()
	if n.leaving.departing {
		n.leaving.depart()
	}
}

// beginShards serves the shards that the others have ceded.
func (n *node) beginShards() {
	if !n.members.inside() {
		return
	}
	if began := n.shards.Begin(); len(began) > 0 {
		n.routing.routeShards(began)
	}
}

// onReleased serves the shards that belong to this member again, and tells the others soon that they need not wait for it.
func (n *node) onReleased() {
	n.beginShards()
	if !n.telling {
		n.telling = true
		n.do(func() {
			n.telling = false
			n.members.beat()
		})
	}
}

// onHolding notes what another member holds, and holding returns what this one does.
func (n *node) onHolding(p *peer, h view.Holding) {
	n.shards.Heard(p.ID, h)
	n.beginShards()
}

func (n *node) holding() view.Holding { return n.shards.Holding() }

// reached routes what waits: a member is heard again, or the lease is back.
func (n *node) reached() { n.routing.routeAll() }

// welcome tells a new member what it needs to know, once both have each other in their views.
func (n *node) welcome(p *peer) {
	if !p.alive() {
		return
	}
	n.cfg.Logger.Info().Str("member", p.label()).Msg("member was added to the cluster")
	if n.events.watch != nil {
		p.post(0, envelope{}, &wantEvents{true})
	}
	own, ended := n.bindings.forNewcomer()
	for _, b := range own {
		n.sendBind(p, b)
	}
	p.postEnded(ended)
}

// lost ends all that the nodes had with each other.
func (n *node) lost(p *peer) {
	n.routing.lose(p)
	n.serving.lose(p)
	n.questions.lose(p)
	n.proxies.lose(p)
	n.events.onWantEvents(p, false)
	if n.members.inside() && !n.leaving.left && n.cfg.Lease.Held() { // otherwise it may be this member that was removed
		ended := n.bindings.ofLost(p, time.Now())
		for _, other := range inOrder(n.members.peers) {
			if other != p {
				other.postEnded(ended)
			}
		}
	}
	p.link.Drop()
	p.cancelled, p.withdrawn = nil, nil
}

// sendBind tells a member of a binding of a caller here.
func (n *node) sendBind(p *peer, b *binding) {
	p.post(n.number(), envelope{History: history{Binding: b.version}}, b.bind)
	n.proxies.introduce(p, b.bind)
}

// removed ends an incarnation that the witness does not have any longer. One that leaves has left.
func (n *node) removed(why string) {
	if n.leaving.left {
		n.endNode()
		return
	}
	n.expelled(why)
}

// expelled ends the incarnation, and begins another one when its sessions are dropped: they belong to other members, or will
// do so when these are told.
func (n *node) expelled(why string) {
	n.cfg.Logger.Warn().Str("member", n.cfg.Name).Str("cause", why).Msg("member was removed from the cluster, and joins it again")
	id := n.members.id
	ended := n.endIncarnation()
	if n.leaving.left {
		n.endNode()
		return
	}
	n.dropping = true
	all := func(messages.Key) bool { return true }
	n.askSupervisor(&clusterapi.Release{Match: all, Leave: n.cfg.KeepOpen, Now: true}, func(any) { n.onDropped(id, ended) })
}

// endIncarnation ends all that the incarnation had, and returns its proxies.
func (n *node) endIncarnation() (ended []*proxy) {
	n.members.end()
	n.shards.end()
	for _, p := range inOrder(n.members.peers) {
		ended = append(ended, n.proxies.endProxies(p)...)
		n.lost(p)
		n.members.forgetPeer(p)
	}
	n.members.id = ""
	return ended
}

// onDropped begins a new incarnation: the supervisor has dropped the sessions of one that has ended. It tells those who watch the
// proxies of that one only now: told before, the supervisor would have closed the sessions of scopes that are bound to them.
func (n *node) onDropped(incarnation string, ended []*proxy) {
	n.dropping = false
	for _, p := range ended {
		n.proxies.tellWatchers(p)
	}
	n.members.keeper.Cede(incarnation)
	if n.members.net != nil && !n.leaves() {
		n.members.beginIncarnation()
	}
}

// leaves reports whether the member leaves the cluster.
func (n *node) leaves() bool { return n.leaving.leaves() }

// onLeaves notes that a member has left.
func (n *node) onLeaves(p *peer, msg *leaves) {
	p.ended = true
	if msg.Clean {
		n.routing.notRun(p)
	}
	n.lost(p)
}

// endNode ends the node.
func (n *node) endNode() {
	n.leaving.begun, n.leaving.left, n.leaving.ended = true, true, true
	n.routing.leave()
	n.endIncarnation()
	n.members.net = nil
	n.leaving.sayLeft()
	n.cfg.Joined, n.cfg.Ask, n.cfg.Observe = func(error) {}, nil, nil // the node outlives the member
	n.quit()
}

// quit gives up the name of the node, if it has left and its supervisor, which gives calls back to it, has
// stopped. The actor is not stopped but forgotten: it still gets what is in its mailbox, and what timers and
// others that have its PID send.
func (n *node) quit() {
	if n.leaving.ended && n.leaving.supervisorStopped {
		n.stopped()
		n.cfg.System.ProcessRegistry.LocalPIDs.GetBucket(n.self.Id).Remove(n.self.Id)
	}
}
