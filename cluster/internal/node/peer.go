package node

import (
	"cmp"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/cluster/internal/link"
)

// peer is one incarnation of another member.
//
//	candidate ──view──▶ member ──leaves──▶ leaving ──view──▶ forgotten
//	    └───────no longer there──┴──────────removed──────────────▲
type peer struct {
	Address
	name    string
	shards  int
	member  bool // in the view; otherwise it wants to be
	greets  bool // it has this member in its own view as well: before that, it would not take messages
	leaving bool // it owns nothing, and still answers
	ended   bool // nothing reaches it any longer
	link    Link
	cfg     *Config
	heard   bool          // it has answered a heartbeat
	heardAt time.Duration // by the clock of the lease: when it did so last, or when it was added
	beatAt  time.Duration // when it was sent a heartbeat last
	hop     time.Duration // until it has confirmed the last heartbeat that it has confirmed in time
	cut     bool          // its connection has ended since it was heard

	cancelled idSet[uint64]     // ids of its commands that were cancelled, and that may still be on their way
	withdrawn idSet[string]     // likewise, of its questions
	proxies   map[string]*proxy // of actors there, by reference
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
func (p *peer) post(id uint64, with envelope, msg any) {
	if p.alive() {
		m, err := encode(with, msg)
		m.ID = id
		p.send(m, err, msg)
	}
}

// send sends what was made of a message, unless that has failed.
func (p *peer) send(m link.Message, err error, of any) {
	if err == nil {
		_, err = p.link.Send(m, true)
	}
	if err != nil {
		p.cfg.Logger.Warn().Str("member", p.label()).Err(err).Type("message", of).Msg("message for a member was dropped")
	}
}

// answer sends a small reply to a command of a member.
func (p *peer) answer(id uint64, reply any) { p.post(id|isReply, envelope{}, reply) }

// maxCancelled bounds the ids that a member may have cancelled in advance.
const maxCancelled = 1024

// idSet is a bounded set of ids.
type idSet[T comparable] []T

// add adds an id, and forgets the oldest one if there are too many.
func (s *idSet[T]) add(id T) {
	if *s = append(*s, id); len(*s) > maxCancelled {
		*s = slices.Delete(*s, 0, 1)
	}
}

// take removes an id, and reports whether it was there.
func (s *idSet[T]) take(id T) bool {
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
		p.post(0, envelope{}, &bindingsEnded{part})
	}
}
