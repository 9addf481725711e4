package admission

import (
	"math"
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
	line         *line // where it is queued
	turn         ring.Node[*Session]
	start        *start // of its process, until that answers
	controls     int    // controls that use its slot
	onlyControls bool   // nothing but controls uses its slot
	idle         bool   // it has no calls
	open         bool   // it has a connection
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
	case s.Held && (s.open || s.onlyControls):
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

// hold gives the session a slot of each of its quotas, or takes it back.
func (s *Session) hold(holds bool) {
	s.count(-1)
	s.Held = holds
	s.count(1)
}

// pin notes whether the session is pinned.
func (s *Session) pin(pinned bool) {
	s.count(-1)
	s.Pinned = pinned
	s.count(1)
}

// drain takes the session out of the order of eviction, ends its pin, and counts its slot as draining.
func (s *Session) drain() {
	s.count(-1)
	s.Pinned, s.Draining = false, true
	s.count(1)
	s.use()
}

// count adds the session to the counts of its quotas, or subtracts it.
func (s *Session) count(n int) {
	for i := range s.quotas {
		q := s.quotas[i].of
		if q == nil {
			continue
		}
		if s.Pinned {
			q.Pins += n
		}
		if !s.Held {
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

// Quota bounds how many sessions may be open at once: all of them, those of one server, or
// those of one tenant. Its fields are read-only for others.
type Quota struct {
	Limit       int           // math.MaxInt is no bound
	Open        int           // slots in use
	draining    int           // slots in use by sessions that drain
	Pins        int           // sessions that are pinned, with or without a slot
	PinnedSlots int           // slots in use by pinned sessions
	LRU         LRU[*Session] // the sessions that may be evicted, or are idle
}

// SetLimit sets the limit. The limit 0 is no bound.
func (q *Quota) SetLimit(limit int) {
	if q.Limit = limit; limit == 0 {
		q.Limit = math.MaxInt
	}
}

// Room returns how many slots are free.
func (q *Quota) Room() int { return max(0, q.Limit-q.Open) }

// excess returns by how many sessions the quota is exceeded, apart from those that drain.
func (q *Quota) excess() int { return max(0, q.Open-q.draining-q.Limit) }

// victim returns the session to evict next, so that wanted more sessions can be open: the least
// recently used idle one, or else the least recently used busy one. Sessions that have calls and are
// not open yet are not evicted. It returns nil if enough sessions drain already. starved reports that
// they do not, and that no session can be evicted.
func (q *Quota) victim(wanted int) (s *Session, starved bool) {
	if wanted <= q.Limit-(q.Open-q.draining) {
		return nil, false
	}
	for _, of := range []Rank{UnusedSlot, UsedSlot} {
		if s := q.LRU.First(of); s != nil {
			return s, false
		}
	}
	return nil, true
}
