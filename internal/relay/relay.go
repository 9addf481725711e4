// Package relay hands what actors say to code that may block for ever: the writer
// of the log, the handlers of the EventStream.
package relay

import (
	"context"
	"runtime/debug"
	"sync"
)

// Relay hands values to a function, one after the other, in a goroutine of its
// own. Put never waits for that function: a value that finds too many others
// waiting is dropped, and counted. The goroutine ends when there is nothing left
// to hand over, so a Relay needs no end. Its methods may be called from any
// goroutine.
type Relay[T any] struct {
	limit int
	take  func(T)
	lost  func(n uint64)                      // said before the next value, when some were dropped
	bug   func(v T, reason any, stack []byte) // take has panicked

	mu      sync.Mutex
	queue   []item[T]
	shares  map[any]int   // how many values of each source wait
	idle    chan struct{} // closed when nothing is left; nil when nothing is there
	dropped uint64
	said    uint64 // of dropped, how many lost was told of
}

type item[T any] struct {
	value  T
	source any
}

// New returns a Relay that hands values to take, and keeps up to limit of them
// while that is busy. When take returns after some were dropped, lost is called
// with their number; when it panics, bug. Both may be nil, and run where take does.
func New[T any](limit int, take func(T), lost func(n uint64), bug func(v T, reason any, stack []byte)) *Relay[T] {
	return &Relay[T]{limit: limit, take: take, lost: lost, bug: bug, shares: map[any]int{}}
}

// Put hands a value over, or drops it.
func (r *Relay[T]) Put(v T) { r.PutOf(nil, r.limit, v) }

// PutOf hands over a value of a source that may have only so many waiting.
func (r *Relay[T]) PutOf(source any, most int, v T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queue) >= r.limit || r.shares[source] >= most {
		r.dropped++
		return
	}
	r.queue = append(r.queue, item[T]{v, source})
	r.shares[source]++
	if r.idle == nil {
		r.idle = make(chan struct{})
		go r.run()
	}
}

// Dropped returns how many values were dropped so far.
func (r *Relay[T]) Dropped() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.dropped
}

// Flush waits until nothing is left, and reports whether it was before ctx ended.
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

// run hands over what there is. It begins anew where the function has ended its
// goroutine.
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
			r.lost(lost)
		}
		r.hand(next)
	}
}

// next takes the first value out. Its source may have another one waiting from now on.
func (r *Relay[T]) next() (v T, lost uint64, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	lost, r.said = r.dropped-r.said, r.dropped
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

// hand calls the function.
func (r *Relay[T]) hand(v T) {
	defer func() {
		if reason := recover(); reason != nil && r.bug != nil {
			r.bug(v, reason, debug.Stack())
		}
	}()
	r.take(v)
}
