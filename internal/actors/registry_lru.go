package actors

// rank is the class of a session in the LRU order.
type rank uint8

const (
	unranked   rank = iota
	noSlot          // no slot, no calls outstanding
	unusedSlot      // a slot, no calls outstanding
	usedSlot        // a connection, calls outstanding

	// maxRanks is enough for these ranks, and for those of [states].
	maxRanks = 6
)

// lru keeps, for each rank, its members in the order of their last use. All operations
// take constant time and allocate nothing: each call moves its session twice.
type lru[T any] struct {
	rings [maxRanks]lruNode[T] // sentinels of rings
	count [maxRanks]int
}

// lruNode is the position of a member. The zero value has no position.
type lruNode[T any] struct {
	rank       rank
	prev, next *lruNode[T]
	member     T
}

// put makes a member the most recently used of a rank.
func (l *lru[T]) put(p *lruNode[T], to rank, member T) {
	l.remove(p)
	if to == unranked {
		return
	}
	ring := l.ring(to)
	*p = lruNode[T]{to, ring.prev, ring, member}
	p.prev.next, p.next.prev = p, p
	l.count[to]++
}

// remove removes a member.
func (l *lru[T]) remove(p *lruNode[T]) {
	if p.rank == unranked {
		return
	}
	p.prev.next, p.next.prev = p.next, p.prev
	l.count[p.rank]--
	*p = lruNode[T]{}
}

// oldest yields the members of a rank, the least recently used one first. The one that was
// yielded may be removed meanwhile.
func (l *lru[T]) oldest(of rank) func(yield func(T) bool) {
	return func(yield func(T) bool) {
		ring := l.ring(of)
		for p := ring.next; p.rank == of; { // the sentinel has none
			next := p.next
			if !yield(p.member) {
				return
			}
			p = next
		}
	}
}

// len returns the number of members of a rank.
func (l *lru[T]) len(of rank) int { return l.count[of] }

// ring returns the sentinel of the ring of a rank.
func (l *lru[T]) ring(of rank) *lruNode[T] {
	ring := &l.rings[of]
	if ring.next == nil {
		ring.prev, ring.next = ring, ring
	}
	return ring
}
