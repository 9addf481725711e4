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

// lru keeps, for each rank, its members in the order of their last use. All operations take
// constant time and allocate nothing: each call moves its session twice.
type lru[T any] struct {
	rings [maxRanks]ring[T]
}

// lruNode is the position of a member. The zero value has no position.
type lruNode[T any] struct {
	rank rank
	node node[T]
}

// put makes a member the most recently used of a rank.
func (l *lru[T]) put(n *lruNode[T], to rank, member T) {
	l.remove(n)
	if to != unranked {
		n.rank = to
		l.rings[to].push(&n.node, member)
	}
}

// remove removes a member.
func (l *lru[T]) remove(n *lruNode[T]) {
	l.rings[n.rank].remove(&n.node)
	n.rank = unranked
}

// oldest yields the members of a rank, the least recently used one first. The one that was
// yielded may be removed meanwhile.
func (l *lru[T]) oldest(of rank) func(yield func(T) bool) { return l.rings[of].all() }

// len returns the number of members of a rank.
func (l *lru[T]) len(of rank) int { return l.rings[of].count }
