package node

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// peer is one incarnation of another member.
//
//	member ──leaves──▶ leaving ──no longer heard──▶ forgotten
//	   └────removed────▶ departed ──after a while──▶ forgotten
type peer struct {
	Address
	name    string // "" until it is heard
	version uint32 // of the protocol that it speaks, if that is another one, or 0
	member  bool   // in the topology
	leaving bool   // it has said so, and still answers
	ended   bool   // it has ended, or has removed this member: nothing reaches it
	link    Link
	heardAt time.Time
	cut     bool      // its connection has ended since it was heard
	goneAt  time.Time // when it was removed

	exchanges map[*exchange]struct{} // that it has
	cancelled idSet                  // ids of commands that were cancelled, and that may still be on their way
	proxies   map[string]*proxy      // of actors there, by reference
	knows     map[string]bool        // references of watched actors here
	events    bool                   // it wants our events
}

// alive reports whether messages reach the member, as far as is known.
func (p *peer) alive() bool { return !p.ended && (p.member || p.leaving) }

// label returns the name of a member, or its address.
func (p *peer) label() string { return cmp.Or(p.name, p.Host) }

// maxCancelled bounds the ids that a member may have cancelled in advance.
const maxCancelled = 1024

// idSet is a bounded set of ids.
type idSet []uint64

// add adds an id, and forgets the oldest one if there are too many.
func (s *idSet) add(id uint64) {
	if *s = append(*s, id); len(*s) > maxCancelled {
		*s = slices.Delete(*s, 0, 1)
	}
}

// take removes an id, and reports whether it was there.
func (s *idSet) take(id uint64) bool {
	i := slices.Index(*s, id)
	if i < 0 {
		return false
	}
	*s = slices.Delete(*s, i, i+1)
	return true
}

// departedFor is how long a member that was removed gets heartbeats: if it still runs, it learns that it
// was removed.
const departedFor = 10 * time.Minute

// onJoined begins a new incarnation.
func (n *node) onJoined(c actor.Context, net Network) {
	if n.left || n.leaving != nil {
		net.Stop()
		return
	}
	n.net, n.proven, n.beatAt = net, true, time.Time{}
	n.cfg.Logger.Info().Str("member", n.cfg.Name).Str("address", net.Address()).Str("incarnation", net.ID()).Msg("member joined the cluster")
}

// onTopology takes the members from the provider. A member that the provider does not list any longer
// was removed. Members that joined later cannot tell it so.
func (n *node) onTopology(c actor.Context, members []Address) {
	if n.isListed(n.members) && !n.isListed(members) && n.leaving == nil {
		n.expelled(c, "the provider does not list it any longer")
		return
	}
	n.members = members
	n.setOwners()
	now := time.Now()
	there := map[string]bool{}
	for _, m := range members {
		there[m.ID] = true
	}
	for _, p := range inOrder(n.peers) {
		if p.member && !there[p.ID] {
			n.removePeer(c, p, now)
		}
	}
	for _, m := range members {
		if m.ID == n.net.ID() || m.Host == n.net.Address() { // the latter is an incarnation that has ended
			continue
		}
		if n.peers[m.ID] == nil { // one that was removed stays so
			n.addPeer(c, m, now)
		}
	}
	n.checkGap(now)
	if len(members) == 1 && n.isListed(members) {
		n.proven = true
	}
	n.renewAlone(now)
	n.releaseMoved(c)
	n.routeWaiting(c)
	n.tellJoined()
}

// isListed reports whether members have this one.
func (n *node) isListed(members []Address) bool {
	return n.net != nil && slices.ContainsFunc(members, func(m Address) bool { return m.ID == n.net.ID() })
}

// tellJoined says that the node can take calls: the provider lists it, and others have confirmed that.
//
// It waits for the others to say their configuration, but not for one that is silent.
func (n *node) tellJoined() {
	if !n.isListed(n.members) || !n.cfg.Lease.Held() || n.timeouts.Calls == nil {
		return
	}
	for _, p := range n.peers {
		if p.alive() && p.name == "" && n.conflict == "" && time.Since(p.heardAt) < n.cfg.LeaseTime {
			return
		}
	}
	var err error
	if n.conflict != "" {
		err = errors.New(n.conflict)
	}
	n.cfg.Joined(err)
}

// addPeer adds a member, and tells it what it needs to know.
func (n *node) addPeer(c actor.Context, m Address, now time.Time) {
	for _, p := range inOrder(n.peers) {
		if p.Host == m.Host && !p.member { // its successor at the same address
			n.losePeer(c, p)
			n.forgetPeer(p)
		}
	}
	p := &peer{
		Address: m, member: true, heardAt: now, link: n.net.Link(m), exchanges: map[*exchange]struct{}{}, proxies: map[string]*proxy{}, knows: map[string]bool{},
	}
	n.peers[m.ID] = p
	n.cfg.Logger.Info().Str("member", p.label()).Msg("member was added to the cluster")
	p.link.Cast(link.Message{Type: typeHeartbeat, Body: n.heartbeat(0, false)}) // it answers if it knows this member
	if len(n.watchers) > 0 {
		n.post(p, 0, &wantEvents{true})
	}
	n.sendBindings(c, p)
}

// removePeer notes that a member is no longer in the topology. One that leaves still hands
// over its shards.
func (n *node) removePeer(c actor.Context, p *peer, now time.Time) {
	p.member, p.goneAt = false, now
	n.cfg.Logger.Info().Str("member", p.label()).Bool("leaving", p.leaving).Msg("member was removed from the cluster")
	if !p.leaving {
		n.losePeer(c, p)
	}
}

// losePeer ends all that the nodes had with each other.
func (n *node) losePeer(c actor.Context, p *peer) {
	p.leaving = false
	n.onPeerLost(c, p)
	n.dropServed(c, p)
	n.dropQuestions(c, p)
	for ref := range inOrder(p.proxies) {
		n.onGone(c, p, ref)
	}
	for ref, from := range n.lines {
		if from = slices.DeleteFunc(from, func(other *peer) bool { return other == p }); len(from) == 0 {
			delete(n.lines, ref)
		} else {
			n.lines[ref] = from
		}
	}
	n.onWantEvents(c, p, false)
	n.cedeFor(c, p)
	if n.net != nil && !n.left && n.cfg.Lease.Held() { // otherwise it may be this member that was removed
		n.spreadBindings(c, p)
	}
	p.link.Drop()
	p.cancelled, p.knows = nil, map[string]bool{}
}

// forgetPeer ends the link to a member that is lost.
func (n *node) forgetPeer(p *peer) {
	p.link.Close()
	delete(n.peers, p.ID)
}

// cedeFor does as if a member that does not answer had ceded all shards.
func (n *node) cedeFor(c actor.Context, p *peer) {
	for _, s := range inOrder(n.shards) {
		delete(s.waiting, p)
		if s.claimed[p] {
			n.onCeded(c, p, s.number)
		}
	}
}

// expelled ends the incarnation, because others have removed it from the cluster for ever, and
// has a new one started. Its sessions belong to other members now.
func (n *node) expelled(c actor.Context, why string) {
	if n.net == nil || n.leaving != nil {
		return
	}
	n.cfg.Logger.Warn().Str("member", n.cfg.Name).Str("cause", why).Msg("member was removed from the cluster, and joins it again")
	n.cfg.Lease.End()
	n.net.Stop()
	for number, s := range inOrder(n.shards) {
		n.ownBits.set(number, false)
		if s.state == activating {
			n.drop(c, s)
		}
	}
	clear(n.shards)
	n.toRelease = nil
	var ended []*proxy
	for _, p := range inOrder(n.peers) {
		for _, proxy := range inOrder(p.proxies) {
			n.endProxy(proxy)
			ended = append(ended, proxy)
		}
		n.losePeer(c, p)
	}
	n.net, n.members, n.owners = nil, nil, nil
	n.view.Store(nil)
	clear(n.peers)
	clear(n.beatLog)
	all := func(messages.Key) bool { return true }
	n.askSupervisor(c, &clusterapi.Release{Match: all, Leave: n.cfg.KeepOpen, Now: true}, func() any { return &dropped{ended} })
}

// dropped says that the supervisor has dropped all sessions of an incarnation that has ended. The
// proxies have ended with it.
type dropped struct{ proxies []*proxy }

// onDropped has a new incarnation started. It tells those who watch the proxies only now: told before,
// the supervisor would have closed the sessions of scopes that are bound to them.
func (n *node) onDropped(c actor.Context, msg *dropped) {
	for _, p := range msg.proxies {
		n.tellWatchers(p)
	}
	if n.leaving == nil && !n.left {
		n.cfg.Rejoin()
	}
}

// snapshot returns the members.
func (n *node) snapshot() []messages.MemberSnapshot {
	own := messages.MemberSnapshot{Name: n.cfg.Name, Self: true, Answered: true, Leaving: n.leaving != nil}
	if n.net != nil {
		own.Address, own.ID = n.net.Address(), n.net.ID()
	}
	list := []messages.MemberSnapshot{own}
	for _, p := range n.peers {
		if p.member || p.leaving {
			list = append(list, messages.MemberSnapshot{Name: p.label(), Address: p.Host, ID: p.ID, Leaving: p.leaving, Answered: time.Since(p.heardAt) < 2*n.cfg.LeaseTime})
		}
	}
	slices.SortFunc(list, func(a, b messages.MemberSnapshot) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return list
}
