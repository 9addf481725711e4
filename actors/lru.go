package actors

import "container/list"

// rank is what the registry looks for when it looks for the least recently used.
type rank uint8

const (
	unranked rank = iota
	resting       // no session, nothing outstanding
	unused        // holds a slot, nothing outstanding
	inUse         // calls outstanding
	ranks
)

// lru keeps, for each rank, its members in the order in which they were last
// used. All operations take constant time.
type lru[T any] struct {
	lists [ranks]list.List
}

// place is where a member stands. Its zero value is nowhere.
type place struct {
	rank rank
	elem *list.Element
}

// put makes a member the most recently used of a rank.
func (l *lru[T]) put(p *place, to rank, member T) {
	if p.rank == to && p.elem != nil {
		l.lists[to].MoveToBack(p.elem)
		return
	}
	l.remove(p)
	if to != unranked {
		*p = place{to, l.lists[to].PushBack(member)}
	}
}

// remove takes a member out.
func (l *lru[T]) remove(p *place) {
	if p.elem != nil {
		l.lists[p.rank].Remove(p.elem)
	}
	*p = place{}
}

// oldest yields the members of a rank, the least recently used first. The one
// that was yielded may be removed meanwhile.
func (l *lru[T]) oldest(of rank) func(yield func(T) bool) {
	return func(yield func(T) bool) {
		for e := l.lists[of].Front(); e != nil; {
			next := e.Next()
			if !yield(e.Value.(T)) {
				return
			}
			e = next
		}
	}
}

// len returns the number of members of a rank.
func (l *lru[T]) len(of rank) int { return l.lists[of].Len() }
