package actors

// queue is an ordered list of calls. A call is in one queue at most. The zero value is
// empty.
type queue struct{ ring[*call] }

// push adds a call at the end.
func (q *queue) push(k *call) { q.ring.push(&k.node, k) }

// pushFront adds a call at the front.
func (q *queue) pushFront(k *call) { q.ring.pushFront(&k.node, k) }

// remove removes a call, if it is in this queue.
func (q *queue) remove(k *call) { q.ring.remove(&k.node) }

// has reports whether a call is in this queue.
func (q *queue) has(k *call) bool { return k.node.in == &q.ring }

// queued reports whether the call is in any queue.
func (k *call) queued() bool { return k.node.in != nil }
