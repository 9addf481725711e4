package contract

import (
	"github.com/mcpactor/mcpactor/actors/internal/ring"
)

// Queue is an ordered list of calls. A call is in one queue at most. The zero value is
// empty.
type Queue struct{ ring.Ring[*Call] }

// Push adds a call at the end.
func (q *Queue) Push(k *Call) { q.Ring.Push(&k.node, k) }

// PushFront adds a call at the front.
func (q *Queue) PushFront(k *Call) { q.Ring.PushFront(&k.node, k) }

// Remove removes a call, if it is in this queue.
func (q *Queue) Remove(k *Call) { q.Ring.Remove(&k.node) }

// Has reports whether a call is in this queue.
func (q *Queue) Has(k *Call) bool { return k.node.In == &q.Ring }

// Queued reports whether the call is in any queue.
func (k *Call) Queued() bool { return k.node.In != nil }
