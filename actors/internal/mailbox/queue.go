package mailbox

import "slices"

// keptCapacity is the largest capacity that an empty queue keeps, in messages.
const keptCapacity = 128

// queue is a list of messages, the oldest first. The zero value is empty.
type queue struct {
	messages []any
	first    int // the index of the oldest; those before it are nil
}

// len returns the number of messages.
func (q *queue) len() int { return len(q.messages) - q.first }

// push adds a message. If most of a full slice is free, the messages move to its beginning.
func (q *queue) push(message any) {
	if len(q.messages) == cap(q.messages) && q.first > len(q.messages)/2 {
		n := copy(q.messages, q.messages[q.first:])
		clear(q.messages[n:])
		q.messages, q.first = q.messages[:n], 0
	}
	q.messages = append(q.messages, message)
}

// pop removes the oldest message. There must be one.
func (q *queue) pop() any {
	message := q.messages[q.first]
	q.messages[q.first] = nil
	q.first++
	if q.len() == 0 {
		q.messages, q.first = q.messages[:0], 0
		if cap(q.messages) > keptCapacity {
			q.messages = nil
		}
	}
	return message
}

// remove removes some messages.
func (q *queue) remove(which func(message any) bool) {
	left := slices.DeleteFunc(q.messages[q.first:], which)
	q.messages = q.messages[:q.first+len(left)]
}
