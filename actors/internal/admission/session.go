package admission

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/ring"
)

// Session is what a [Gate] knows of one session. Its fields are read-only for others.
type Session struct {
	Of     any     // whose it is
	Place  *Place  // where it dials
	Tenant *Tenant // nil without one

	Held     bool // it has a slot of each of its quotas
	Draining bool // it was told to drain
	Pinned   bool // it is not evicted
	Cleanup  bool // it only closes what others have left open

	Dialing  bool      // it has a permit
	DialedAt time.Time // when it got the last one
	Probing  bool      // its server was down then

	quotas [3]struct { // all, of the server, of the tenant
		of   *Quota // nil without one
		node Node[*Session]
	}
	line     *line // where it is queued
	turn     ring.Node[*Session]
	start    *start // of its process, until that answers
	controls int    // controls that use its slot
	lent     bool   // nothing but controls uses its slot
	idle     bool   // it has no calls
	open     bool   // it has a connection
}

// Queued reports whether the session waits for its turn.
func (s *Session) Queued() bool { return s.line != nil }

// rank returns the rank of the session in the order of eviction.
func (s *Session) rank() Rank {
	switch {
	case s.Draining || s.Pinned:
		return Unranked
	case s.Held && s.idle:
		return UnusedSlot
	case s.Held && (s.open || s.lent):
		return UsedSlot
	case s.idle:
		return NoSlot
	}
	return Unranked
}

// use makes the session the most recently used one of its rank. It returns the ranks before and after.
func (s *Session) use() (before, to Rank) {
	before, to = s.quotas[0].node.Rank, s.rank()
	for i := range s.quotas {
		if q := &s.quotas[i]; q.of != nil {
			q.of.LRU.Put(&q.node, to, s)
		}
	}
	return before, to
}

// count adds a slot to the quotas, or subtracts it.
func (s *Session) count(n int) {
	s.Held = n > 0
	for i := range s.quotas {
		q := s.quotas[i].of
		if q == nil {
			continue
		}
		q.Open += n
		if s.Draining {
			q.draining += n
		}
		if s.Pinned {
			q.PinnedSlots += n
		}
	}
}

// pin notes whether the session is pinned.
func (s *Session) pin(pinned bool) {
	if s.Pinned == pinned {
		return
	}
	n := -1
	if pinned {
		n = 1
	}
	for i := range s.quotas {
		q := s.quotas[i].of
		if q == nil {
			continue
		}
		q.Pins += n
		if s.Held {
			q.PinnedSlots += n
		}
	}
	s.Pinned = pinned
}

// drain takes the session out of the order of eviction, ends its pin, and counts its slot as draining.
func (s *Session) drain() {
	s.pin(false)
	held := s.Held
	if held {
		s.count(-1)
	}
	s.Draining = true
	if held {
		s.count(1)
	}
	s.use()
}
