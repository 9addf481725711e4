package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/cluster/internal/view"
)

// peer is one incarnation of another member.
//
//	candidate ──view──▶ member ──leaves──▶ leaving ──view──▶ forgotten
//	    └───────no longer there──┴──────────removed──────────────▲
type peer struct {
	Address
	name    string
	shards  int
	member  bool   // in the view; otherwise it wants to be
	greets  bool   // it has this member in its own view as well: before that, it would not take messages
	leaving bool   // it owns nothing, and still answers
	ended   bool   // nothing reaches it any longer
	version uint32 // of the protocol that it speaks, if that is another one, or 0
	link    Link
	heard   bool          // it has answered a heartbeat
	heardAt time.Duration // by the clock of the lease: when it did so last, or when it was added
	cut     bool          // its connection has ended since it was heard

	connected bool // to it

	exchanges map[*exchange]struct{} // that it has
	cancelled idSet                  // ids of commands that were cancelled, and that may still be on their way
	proxies   map[string]*proxy      // of actors there, by reference
	knows     map[string]bool        // references of watched actors here
	events    bool                   // it wants our events
}

// alive reports whether messages reach the member, as far as is known.
func (p *peer) alive() bool { return !p.ended && p.member && p.greets }

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

// addPeer adds a member, or one that wants to be one.
func (n *node) addPeer(m view.Member) {
	at := Address{ID: m.ID, Host: m.Host}
	p := &peer{
		Address: at, name: m.Name, shards: m.Shards, heardAt: n.cfg.Lease.Now(), link: n.net.Link(at),
		exchanges: map[*exchange]struct{}{}, proxies: map[string]*proxy{}, knows: map[string]bool{},
	}
	n.peers[m.ID] = p
	n.cast(p, typeHeartbeat, n.beats)
}

// welcome tells a new member what it needs to know, once both have each other in their views.
func (n *node) welcome(p *peer) {
	if !p.alive() {
		return
	}
	n.cfg.Logger.Info().Str("member", p.label()).Msg("member was added to the cluster")
	if p.heard {
		n.checkConflict(p)
	}
	if len(n.watchers) > 0 {
		n.post(p, 0, &wantEvents{true})
	}
	n.sendBindings(p)
}

// removePeer forgets one that is neither a member nor wants to be one.
func (n *node) removePeer(p *peer) {
	if p.member {
		n.cfg.Logger.Info().Str("member", p.label()).Bool("leaving", p.leaving).Msg("member was removed from the cluster")
		p.member = false
		n.losePeer(p)
	}
	n.forgetPeer(p)
}

// losePeer ends all that the nodes had with each other.
func (n *node) losePeer(p *peer) {
	n.onPeerLost(p)
	n.dropServed(p)
	n.dropQuestions(p)
	for ref := range inOrder(p.proxies) {
		n.onGone(p, ref)
	}
	for ref, from := range n.lines {
		if from = slices.DeleteFunc(from, func(other *peer) bool { return other == p }); len(from) == 0 {
			delete(n.lines, ref)
		} else {
			n.lines[ref] = from
		}
	}
	n.onWantEvents(p, false)
	if n.inside && !n.left && n.cfg.Lease.Held() { // otherwise it may be this member that was removed
		n.spreadBindings(p)
	}
	p.link.Drop()
	p.cancelled, p.knows = nil, map[string]bool{}
}

// forgetPeer ends the link to a member that is lost.
func (n *node) forgetPeer(p *peer) {
	p.link.Close()
	delete(n.peers, p.ID)
}
