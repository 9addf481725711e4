package actors

import "math"

// quota bounds how many sessions may be open at once: all of them, those of one server, or
// those of one tenant.
type quota struct {
	limit       int                // math.MaxInt is no bound
	open        int                // slots in use
	draining    int                // slots in use by sessions that drain
	pins        int                // sessions that are pinned, with or without a slot
	pinnedSlots int                // slots in use by pinned sessions
	lru         lru[*registration] // the sessions that may be evicted, or are idle
}

// newQuota returns a quota. The limit 0 is no bound.
func newQuota(limit int) *quota {
	q := &quota{}
	q.setLimit(limit)
	return q
}

// setLimit sets the limit. The limit 0 is no bound.
func (q *quota) setLimit(limit int) {
	if q.limit = limit; limit == 0 {
		q.limit = math.MaxInt
	}
}

// room returns how many slots are free.
func (q *quota) room() int { return max(0, q.limit-q.open) }

// missing returns how many sessions must drain, besides those that already do, so that
// wanted more sessions can be open.
func (q *quota) missing(wanted int) int { return wanted - (q.limit - (q.open - q.draining)) }

// oldest returns the session to evict next, or nil: the least recently used idle one, or
// the least recently used busy one if none is idle. Sessions that have calls and are not
// open yet are not evicted.
func (q *quota) oldest() *registration {
	for _, of := range []rank{unusedSlot, usedSlot} {
		for reg := range q.lru.oldest(of) {
			return reg
		}
	}
	return nil
}

// member is the place of a session in a quota.
type member struct {
	of   *quota
	node lruNode[*registration]
}

// updateRank moves a session to its place in the LRU orders, as the most recently used one
// of its rank.
func (reg *registration) updateRank() {
	rank := reg.rank()
	for i := range reg.quotas {
		if m := &reg.quotas[i]; m.of != nil {
			m.of.lru.put(&m.node, rank, reg)
		}
	}
}

// removeRank removes a session from the LRU orders.
func (reg *registration) removeRank() {
	for i := range reg.quotas {
		if m := &reg.quotas[i]; m.of != nil {
			m.of.lru.remove(&m.node)
		}
	}
}

// takeSlot counts a session as open.
func (reg *registration) takeSlot() {
	if !reg.slot {
		reg.slot = true
		reg.countSlot(1)
	}
}

// returnSlot counts a session as not open.
func (reg *registration) returnSlot() {
	reg.countSlot(-1)
	reg.slot = false
}

// startDraining takes a session out of the LRU orders, ends its pin, and counts its slot as
// draining.
func (reg *registration) startDraining() {
	reg.setPinned(false)
	reg.removeRank()
	held := reg.slot
	if held {
		reg.returnSlot()
	}
	reg.draining = true
	if held {
		reg.takeSlot()
	}
}

// countSlot adds the slot of a session to its quotas, or subtracts it.
func (reg *registration) countSlot(n int) {
	for i := range reg.quotas {
		q := reg.quotas[i].of
		if q == nil {
			continue
		}
		q.open += n
		if reg.draining {
			q.draining += n
		}
		if reg.pinned {
			q.pinnedSlots += n
		}
	}
}
