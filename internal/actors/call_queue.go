package actors

import "iter"

// queue is an ordered list of calls. A call is in one queue at most. Adding and removing a
// call takes constant time. The zero value is empty.
type queue struct {
	first, last *call
	count       int
}

// push adds a call at the end.
func (q *queue) push(k *call) {
	k.in, k.prev, k.next = q, q.last, nil
	if q.last == nil {
		q.first = k
	} else {
		q.last.next = k
	}
	q.last = k
	q.count++
}

// pushFront adds a call at the front.
func (q *queue) pushFront(k *call) {
	k.in, k.prev, k.next = q, nil, q.first
	if q.first == nil {
		q.last = k
	} else {
		q.first.prev = k
	}
	q.first = k
	q.count++
}

// remove removes a call, if it is in this queue.
func (q *queue) remove(k *call) {
	if k.in != q {
		return
	}
	if k.prev == nil {
		q.first = k.next
	} else {
		k.prev.next = k.next
	}
	if k.next == nil {
		q.last = k.prev
	} else {
		k.next.prev = k.prev
	}
	k.in, k.prev, k.next = nil, nil, nil
	q.count--
}

// take empties the queue, and returns its calls.
func (q *queue) take() []*call {
	all := make([]*call, 0, q.count)
	for k := range q.all() {
		q.remove(k)
		all = append(all, k)
	}
	return all
}

// all yields the calls in order. The one that was yielded may be removed meanwhile.
func (q *queue) all() iter.Seq[*call] {
	return func(yield func(*call) bool) {
		for k := q.first; k != nil; {
			next := k.next
			if !yield(k) {
				return
			}
			k = next
		}
	}
}
