package admission

import (
	"github.com/mcpactor/mcpactor/actors/internal/ring"
)

// Rank is the class of a session in the LRU order.
type Rank uint8

// The ranks of a session.
const (
	Unranked   Rank = iota
	NoSlot          // no slot, no calls outstanding
	UnusedSlot      // a slot, no calls outstanding
	UsedSlot        // a connection, calls outstanding

	// maxRanks is enough for these ranks, and for the states of a session, which are ranks as well.
	maxRanks = 6
)

// LRU keeps, for each rank, its values in the order of their last use. All operations take
// constant time and allocate nothing: each call moves its session twice.
type LRU[T any] struct {
	rings [maxRanks]ring.Ring[T]
}

// Node is the position of a value. The zero value has no position.
type Node[T any] struct {
	Rank Rank
	node ring.Node[T]
}

// Put makes a value the most recently used of a rank.
func (l *LRU[T]) Put(n *Node[T], to Rank, value T) {
	l.Remove(n)
	if to != Unranked {
		n.Rank = to
		l.rings[to].Push(&n.node, value)
	}
}

// Remove removes a value.
func (l *LRU[T]) Remove(n *Node[T]) {
	l.rings[n.Rank].Remove(&n.node)
	n.Rank = Unranked
}

// Oldest yields the values of a rank, the least recently used one first. The one that was
// yielded may be removed meanwhile.
func (l *LRU[T]) Oldest(of Rank) func(yield func(T) bool) { return l.rings[of].All() }

// First returns the least recently used member of a rank, or the zero value if there is none.
func (l *LRU[T]) First(of Rank) T { return l.rings[of].First() }

// Len returns the number of values of a rank.
func (l *LRU[T]) Len(of Rank) int { return l.rings[of].Count }
