// Package alarm keeps what is due at certain times.
package alarm

import (
	"container/heap"
	"time"
)

// Alarm has entries that are due at some time. The zero value has none. Each operation takes time that grows with the logarithm
// of their number.
type Alarm[T any] struct{ set entries[T] }

// Entry is set to a time, or not. The zero value is not.
type Entry[T any] struct {
	What T // is due

	at    time.Time
	index int // in the heap
}

// At returns the time that the entry is set to, or the zero time.
func (e *Entry[T]) At() time.Time { return e.at }

// Set sets an entry to a time. The zero time removes it.
func (a *Alarm[T]) Set(e *Entry[T], at time.Time) {
	if at.Equal(e.at) {
		return
	}
	if !e.at.IsZero() {
		heap.Remove(&a.set, e.index)
	}
	if e.at = at; !at.IsZero() {
		heap.Push(&a.set, e)
	}
}

// Hasten sets an entry to a time, unless it is set to an earlier one.
func (a *Alarm[T]) Hasten(e *Entry[T], at time.Time) {
	if e.at.IsZero() || at.Before(e.at) {
		a.Set(e, at)
	}
}

// Remove removes an entry, if it is set.
func (a *Alarm[T]) Remove(e *Entry[T]) { a.Set(e, time.Time{}) }

// Next returns when the first entry is due, or the zero time.
func (a *Alarm[T]) Next() (at time.Time) {
	if len(a.set) > 0 {
		at = a.set[0].at
	}
	return at
}

// Due removes and returns an entry that is due, or nil.
func (a *Alarm[T]) Due(now time.Time) *Entry[T] {
	if len(a.set) == 0 || a.set[0].at.After(now) {
		return nil
	}
	first := a.set[0]
	a.Remove(first)
	return first
}

// entries is a heap.
type entries[T any] []*Entry[T]

// Len and the other methods are for [heap.Interface].
func (s entries[T]) Len() int { return len(s) }

// Less orders by time.
func (s entries[T]) Less(i, j int) bool { return s[i].at.Before(s[j].at) }

// Swap swaps two entries.
func (s entries[T]) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].index, s[j].index = i, j
}

// Push appends an entry.
func (s *entries[T]) Push(e any) {
	e.(*Entry[T]).index = len(*s)
	*s = append(*s, e.(*Entry[T]))
}

// Pop removes the last entry.
func (s *entries[T]) Pop() any {
	last := len(*s) - 1
	e := (*s)[last]
	(*s)[last] = nil
	*s = (*s)[:last]
	return e
}
