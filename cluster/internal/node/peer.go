package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
	"github.com/mcpactor/mcpactor/cluster/internal/view"
	"github.com/mcpactor/mcpactor/cluster/internal/wire"
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
	cfg     *Config
	heard   bool          // it has answered a heartbeat
	heardAt time.Duration // by the clock of the lease: when it did so last, or when it was added
	cut     bool          // its connection has ended since it was heard

	connected bool // to it

	cancelled idSet             // ids of its commands and questions that were cancelled, and that may still be on their way
	proxies   map[string]*proxy // of actors there, by reference
	knows     map[string]bool   // references of watched actors here
}

// alive reports whether messages reach the member, as far as is known.
func (p *peer) alive() bool { return !p.ended && p.member && p.greets }

// label returns the name of a member, or its address.
func (p *peer) label() string { return cmp.Or(p.name, p.Host) }

// silent reports whether a member was not heard yet, or not since its connection has ended, or
// whether its heartbeats are overdue.
func (p *peer) silent() bool {
	return !p.heard || p.cut || p.cfg.Lease.Now()-p.heardAt > p.cfg.LeaseTime/2
}

// post encodes a message, and sends it to a member, unless that is lost.
func (p *peer) post(id uint64, msg any) {
	if !p.alive() {
		return
	}
	typ, body, err := wire.Encode(msg, refs{})
	if err != nil {
		p.cfg.Logger.Error().Err(err).Type("message", msg).Msg("message for a member cannot be encoded")
		return
	}
	if _, err := p.link.Send(link.Message{Type: typ, ID: id, Body: body}, true); err != nil {
		p.cfg.Logger.Warn().Str("member", p.label()).Err(err).Type("message", msg).Msg("message for a member was dropped")
	}
}

// answer sends a small reply to a command or a question of a member.
func (p *peer) answer(id uint64, reply any) { p.post(id|isReply, reply) }

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
		Address: at, name: m.Name, shards: m.Shards, heardAt: n.cfg.Lease.Now(), link: n.net.Link(at), cfg: n.cfg,
		proxies: map[string]*proxy{}, knows: map[string]bool{},
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
	if n.events.watched() {
		p.post(0, &wantEvents{true})
	}
	own, ended := n.bindings.forNewcomer()
	for _, b := range own {
		n.sendBind(p, b)
	}
	p.postEnded(ended)
}

// sendBind tells a member of a binding of a caller here.
func (n *node) sendBind(p *peer, b *binding) {
	typ, body, err := wire.Encode(b.bind, refs{})
	if err != nil {
		n.cfg.Logger.Error().Err(err).Msg("binding cannot be encoded")
		return
	}
	p.post(n.number(), &resent{history{Binding: b.version}, typ, body})
	n.proxies.introduce(p, b.bind)
}

// postEnded tells a member of bindings that have ended.
func (p *peer) postEnded(ended []endedBinding) {
	for part := range slices.Chunk(ended, maxEnded) {
		p.post(0, &bindingsEnded{part})
	}
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
	n.routing.lose(p)
	n.serving.lose(p)
	n.questions.lose(p)
	n.proxies.lose(p)
	n.events.onWantEvents(p, false)
	if n.inside && !n.left && n.cfg.Lease.Held() { // otherwise it may be this member that was removed
		ended := n.bindings.ofLost(p, time.Now())
		for _, other := range inOrder(n.peers) {
			if other != p {
				other.postEnded(ended)
			}
		}
	}
	p.link.Drop()
	p.cancelled = nil
}

// forgetPeer ends the link to a member that is lost.
func (n *node) forgetPeer(p *peer) {
	p.member = false
	p.link.Close()
	delete(n.peers, p.ID)
}
