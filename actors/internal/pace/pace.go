// Package pace spreads many small things over time.
package pace

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/alarm"
)

const (
	// Interval is the time in which at most Burst things are done.
	Interval = time.Millisecond
	// Burst bounds the things of one interval. Each one wakes a session and a caller: a larger burst would keep all
	// processors busy, and delay the calls of other keys.
	Burst = 64
)

// Pace does at most Burst things in each Interval, and queues the rest. The keys take turns, so that a key with many does
// not delay the others.
type Pace[K comparable] struct {
	alarm  *alarm.Alarm[func()]
	due    alarm.Entry[func()] // the end of this interval; not set after one in which nothing was done
	queues map[K][]func()      // what waits
	turns  []K                 // of the queues, in order
	used   int                 // of Burst, in this interval
}

// New returns a pace whose intervals end by an alarm.
func New[K comparable](by *alarm.Alarm[func()]) *Pace[K] {
	p := &Pace[K]{alarm: by, queues: map[K][]func(){}}
	p.due.What = p.intervalEnds
	return p
}

// Keys returns how many keys have things that wait.
func (p *Pace[K]) Keys() int { return len(p.queues) }

// Waiting returns how many things wait.
func (p *Pace[K]) Waiting() (n int) {
	for _, of := range p.queues {
		n += len(of)
	}
	return n
}

// Add does something for a key, now or in its turn.
func (p *Pace[K]) Add(key K, do func()) {
	if p.due.At().IsZero() {
		p.alarm.Set(&p.due, time.Now().Add(Interval))
	}
	if p.used < Burst && len(p.turns) == 0 {
		p.used++
		do()
		return
	}
	if p.queues[key] == nil {
		p.turns = append(p.turns, key)
	}
	p.queues[key] = append(p.queues[key], do)
}

// intervalEnds does the next things that wait.
func (p *Pace[K]) intervalEnds() {
	p.used = 0
	if len(p.turns) == 0 {
		p.turns = nil
		return
	}
	p.alarm.Set(&p.due, time.Now().Add(Interval))
	for ; p.used < Burst && len(p.turns) > 0; p.used++ {
		p.next()()
	}
}

// next removes the next thing. There must be one.
func (p *Pace[K]) next() func() {
	key := p.turns[0]
	p.turns = p.turns[1:]
	of := p.queues[key]
	do := of[0]
	of[0] = nil
	if len(of) == 1 {
		delete(p.queues, key)
		return do
	}
	p.queues[key], p.turns = of[1:], append(p.turns, key)
	return do
}
