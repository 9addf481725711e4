package admission

import "math"

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
