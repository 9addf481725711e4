package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
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

// postEnded tells a member of bindings that have ended.
func (p *peer) postEnded(ended []endedBinding) {
	for part := range slices.Chunk(ended, maxEnded) {
		p.post(0, &bindingsEnded{part})
	}
}
