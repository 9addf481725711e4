// Package ring has an ordered list whose values bring their nodes.
package ring

import "iter"

// Ring is an ordered list. Each value brings its node, and is in one ring at most. Adding
// and removing a value takes constant time and allocates nothing. The zero value is empty.
type Ring[T any] struct {
	sentinel Node[T] // its neighbors are the last and the first node
	Count    int
}

// Node is the position of a value. The zero value is in no ring.
type Node[T any] struct {
	In         *Ring[T]
	prev, next *Node[T]
	value      T
}

// Push adds a value at the end.
func (r *Ring[T]) Push(n *Node[T], value T) { r.insert(n, value, r.end()) }

// PushFront adds a value at the front.
func (r *Ring[T]) PushFront(n *Node[T], value T) { r.insert(n, value, r.end().next) }

// insert adds a value before another node.
func (r *Ring[T]) insert(n *Node[T], value T, before *Node[T]) {
	*n = Node[T]{r, before.prev, before, value}
	n.prev.next, n.next.prev = n, n
	r.Count++
}

// Remove removes a value, if it is in this ring.
func (r *Ring[T]) Remove(n *Node[T]) {
	if n.In != r {
		return
	}
	n.prev.next, n.next.prev = n.next, n.prev
	*n = Node[T]{}
	r.Count--
}

// Take empties the ring, and returns its values.
func (r *Ring[T]) Take() []T {
	all := make([]T, 0, r.Count)
	for n := r.end().next; n.In == r; n = r.end().next {
		all = append(all, n.value)
		r.Remove(n)
	}
	return all
}

// First returns the first value, or the zero value if there is none.
func (r *Ring[T]) First() T { return r.end().next.value }

// All yields the values in order. The one that was yielded may be removed meanwhile.
func (r *Ring[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for n := r.end().next; n.In == r; { // the sentinel is in no ring
			next := n.next
			if !yield(n.value) {
				return
			}
			n = next
		}
	}
}

// end returns the sentinel.
func (r *Ring[T]) end() *Node[T] {
	if r.sentinel.next == nil {
		r.sentinel.prev, r.sentinel.next = &r.sentinel, &r.sentinel
	}
	return &r.sentinel
}
