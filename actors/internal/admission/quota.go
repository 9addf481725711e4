package admission

import "math"

// Quota bounds how many sessions may be open at once: all of them, those of one server, or
// those of one tenant.
type Quota[T any] struct {
	Limit       int    // math.MaxInt is no bound
	Open        int    // slots in use
	draining    int    // slots in use by sessions that drain
	Pins        int    // sessions that are pinned, with or without a slot
	PinnedSlots int    // slots in use by pinned sessions
	LRU         LRU[T] // the sessions that may be evicted, or are idle
}

// NewQuota returns a quota. The limit 0 is no bound.
func NewQuota[T any](limit int) *Quota[T] {
	q := &Quota[T]{}
	q.SetLimit(limit)
	return q
}

// SetLimit sets the limit. The limit 0 is no bound.
func (q *Quota[T]) SetLimit(limit int) {
	if q.Limit = limit; limit == 0 {
		q.Limit = math.MaxInt
	}
}

// Room returns how many slots are free.
func (q *Quota[T]) Room() int { return max(0, q.Limit-q.Open) }

// Missing returns how many sessions must drain, besides those that already do, so that
// wanted more sessions can be open.
func (q *Quota[T]) Missing(wanted int) int { return wanted - (q.Limit - (q.Open - q.draining)) }

// Excess returns by how many sessions the quota is exceeded, apart from those that drain.
func (q *Quota[T]) Excess() int { return max(0, q.Open-q.draining-q.Limit) }

// Oldest returns the session to evict next, if there is one: the least recently used idle one, or
// the least recently used busy one if none is idle. Sessions that have calls and are not
// open yet are not evicted.
func (q *Quota[T]) Oldest() (session T, found bool) {
	for _, of := range []Rank{UnusedSlot, UsedSlot} {
		for session := range q.LRU.Oldest(of) {
			return session, true
		}
	}
	return session, false
}

// Slots is what one session has of its quotas: at most one slot of each, and a position in the order of
// eviction. The zero value is in no quota.
type Slots[T any] struct {
	quotas [3]struct {
		of   *Quota[T]
		node Node[T]
	}
	Held     bool // the session has a slot of each quota
	Draining bool // it was told to drain
	Pinned   bool // it is not evicted
}

// Join puts a session that has no slot into its quotas. Those that are nil do not count.
func (s *Slots[T]) Join(all, ofServer, ofTenant *Quota[T]) {
	s.quotas[0].of, s.quotas[1].of, s.quotas[2].of = all, ofServer, ofTenant
}

// Use moves a session to its place in the orders of eviction, as the most recently used one of a
// rank.
func (s *Slots[T]) Use(session T, as Rank) {
	for i := range s.quotas {
		if q := &s.quotas[i]; q.of != nil {
			q.of.LRU.Put(&q.node, as, session)
		}
	}
}

// Leave removes a session from the orders of eviction.
func (s *Slots[T]) Leave() {
	for i := range s.quotas {
		if q := &s.quotas[i]; q.of != nil {
			q.of.LRU.Remove(&q.node)
		}
	}
}

// Take counts a session as open.
func (s *Slots[T]) Take() {
	if !s.Held {
		s.Held = true
		s.count(1)
	}
}

// GiveBack counts a session as not open.
func (s *Slots[T]) GiveBack() {
	s.count(-1)
	s.Held = false
}

// Drain takes a session out of the orders of eviction, ends its pin, and counts its slot as
// draining.
func (s *Slots[T]) Drain() {
	s.Pin(false)
	s.Leave()
	held := s.Held
	if held {
		s.GiveBack()
	}
	s.Draining = true
	if held {
		s.Take()
	}
}

// Pin notes whether a session is pinned. A pinned session has no place in the orders of eviction.
func (s *Slots[T]) Pin(pinned bool) {
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

// count adds a slot to the quotas, or subtracts it.
func (s *Slots[T]) count(n int) {
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
