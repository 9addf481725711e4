// Package relay passes log lines and events from actors to code that may block: the
// writer of the log, and the handlers of the EventStream.
package relay

import (
	"context"
	"runtime/debug"
	"sync"
)

// Relay passes values to a function, one after the other, in its own goroutine. Put
// never waits for that function: if too many values are queued it drops the value and
// counts it. The goroutine ends when the queue is empty, so a Relay need not be closed.
// Its methods may be called from any goroutine.
type Relay[T any] struct {
	limit int
	take  func(T)
	lost  func(n uint64)                      // called before the next value if values were dropped
	bug   func(v T, reason any, stack []byte) // called if take panics

	mu      sync.Mutex
	queue   []item[T]
	shares  map[any]int   // the number of queued values of each source
	idle    chan struct{} // closed when the queue becomes empty; nil while the Relay is idle
	dropped uint64
	told    uint64 // the value of dropped at the last call of next
}

type item[T any] struct {
	value  T
	source any
}

// New returns a Relay that passes values to take, and queues up to limit of them while
// take is busy. lost is called with the number of values that were dropped since its
// last call, and bug if take panics. Both may be nil, and run in the goroutine of take. If
// lost panics, the Relay goes on.
func New[T any](limit int, take func(T), lost func(n uint64), bug func(v T, reason any, stack []byte)) *Relay[T] {
	return &Relay[T]{limit: limit, take: take, lost: lost, bug: bug, shares: map[any]int{}}
}

// Put queues a value, or drops it. It reports whether the value is queued.
func (r *Relay[T]) Put(v T) bool { return r.PutOf(nil, r.limit, v) }

// PutOf queues a value of a source, or drops it if most values of this source are
// queued. It reports whether the value is queued.
func (r *Relay[T]) PutOf(source any, most int, v T) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) >= r.limit || r.shares[source] >= most {
		r.dropped++
		return false
	}
	r.queue = append(r.queue, item[T]{v, source})
	r.shares[source]++
	if r.idle == nil {
		r.idle = make(chan struct{})
		go r.run()
	}
	return true
}

// Dropped returns how many values have been dropped.
func (r *Relay[T]) Dropped() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

// Flush waits until the queue is empty or ctx ends, and reports whether it is empty.
func (r *Relay[T]) Flush(ctx context.Context) bool {
	for {
		r.mu.Lock()
		idle := r.idle
		r.mu.Unlock()
		if idle == nil {
			return true
		}
		select {
		case <-idle:
		case <-ctx.Done():
			return false
		}
	}
}

// run passes on all queued values. It starts again in a new goroutine if the function
// has ended this one.
func (r *Relay[T]) run() {
	over := false
	defer func() {
		if !over {
			go r.run()
		}
	}()
	for {
		next, lost, more := r.next()
		if !more {
			over = true
			return
		}
		if lost > 0 && r.lost != nil {
			r.tell(lost)
		}
		r.hand(next)
	}
}

// next removes the first value from the queue, and from the share of its source.
func (r *Relay[T]) next() (v T, lost uint64, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lost, r.told = r.dropped-r.told, r.dropped
	if len(r.queue) == 0 {
		close(r.idle)
		r.idle, r.queue = nil, nil
		return v, 0, false
	}
	first := r.queue[0]
	r.queue[0] = item[T]{}
	r.queue = r.queue[1:]
	if r.shares[first.source]--; r.shares[first.source] == 0 {
		delete(r.shares, first.source)
	}
	return first.value, lost, true
}

// tell calls lost. A panic is dropped: the writer that take writes to may panic here, too.
func (r *Relay[T]) tell(n uint64) {
	defer func() { _ = recover() }()
	r.lost(n)
}

// hand calls take, and bug if take panics.
func (r *Relay[T]) hand(v T) {
	defer func() {
		if reason := recover(); reason != nil && r.bug != nil {
			r.bug(v, reason, debug.Stack())
		}
	}()
	r.take(v)
}
