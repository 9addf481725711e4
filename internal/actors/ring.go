package actors

import "iter"

// ring is an ordered list. Each member brings its node, and is in one ring at most. Adding
// and removing a member takes constant time and allocates nothing. The zero value is empty.
type ring[T any] struct {
	sentinel node[T] // its neighbors are the last and the first node
	count    int
}

// node is the position of a member. The zero value is in no ring.
type node[T any] struct {
	in         *ring[T]
	prev, next *node[T]
	member     T
}

// push adds a member at the end.
func (r *ring[T]) push(n *node[T], member T) { r.insert(n, member, r.end()) }

// pushFront adds a member at the front.
func (r *ring[T]) pushFront(n *node[T], member T) { r.insert(n, member, r.end().next) }

// insert adds a member before another node.
func (r *ring[T]) insert(n *node[T], member T, before *node[T]) {
	*n = node[T]{r, before.prev, before, member}
	n.prev.next, n.next.prev = n, n
	r.count++
}

// remove removes a member, if it is in this ring.
func (r *ring[T]) remove(n *node[T]) {
	if n.in != r {
		return
	}
	n.prev.next, n.next.prev = n.next, n.prev
	*n = node[T]{}
	r.count--
}

// take empties the ring, and returns its members.
func (r *ring[T]) take() []T {
	all := make([]T, 0, r.count)
	for n := r.end().next; n.in == r; n = r.end().next {
		all = append(all, n.member)
		r.remove(n)
	}
	return all
}

// all yields the members in order. The one that was yielded may be removed meanwhile.
func (r *ring[T]) all() iter.Seq[T] {
	return func(yield func(T) bool) {
		for n := r.end().next; n.in == r; { // the sentinel is in no ring
			next := n.next
			if !yield(n.member) {
				return
			}
			n = next
		}
	}
}

// end returns the sentinel.
func (r *ring[T]) end() *node[T] {
	if r.sentinel.next == nil {
		r.sentinel.prev, r.sentinel.next = &r.sentinel, &r.sentinel
	}
	return &r.sentinel
}
