package main

import (
	"slices"

	"github.com/mcpactor/mcpactor/messages"
)

// order decides whose turn it is: the jobs of one key run as they came, at most
// so many at once; those of different keys at the same time. A close waits for
// the earlier jobs of the keys it is about, and the later ones wait for it.
type order struct {
	parallel int
	start    func(*job)
	queues   map[messages.Key]*queue
	closes   []*job // not done, in the order in which they came
}

// queue is what waits for one key, in the order in which it came. A close stands
// in the queues of all the keys it is about until it is done.
type queue struct {
	waiting []*job
	running int
}

func newOrder(parallel int) *order {
	return &order{parallel: parallel, queues: map[messages.Key]*queue{}}
}

// add takes a job in.
func (o *order) add(j *job) {
	if j.closes != nil {
		o.closes = append(o.closes, j)
		for key, q := range o.queues {
			if j.closes.matches(key) {
				q.waiting = append(q.waiting, j)
			}
		}
		o.tryClose(j)
		return
	}
	q := o.queues[j.key]
	if q == nil {
		q = new(queue)
		o.queues[j.key] = q
		for _, c := range o.closes {
			if c.closes.matches(j.key) {
				q.waiting = append(q.waiting, c)
			}
		}
	}
	q.waiting = append(q.waiting, j)
	o.pump(j.key, q)
}

// remove takes a job out that has run.
func (o *order) remove(j *job) {
	if j.closes == nil {
		q := o.queues[j.key]
		q.running--
		o.pump(j.key, q)
		return
	}
	o.closes = slices.DeleteFunc(o.closes, func(c *job) bool { return c == j })
	for key, q := range o.queues {
		if j.closes.matches(key) {
			q.waiting = q.waiting[1:]
			o.pump(key, q)
		}
	}
	for _, c := range slices.Clone(o.closes) {
		o.tryClose(c)
	}
}

// drop takes a job out that has not run.
func (o *order) drop(j *job) {
	q := o.queues[j.key]
	q.waiting = slices.DeleteFunc(q.waiting, func(w *job) bool { return w == j })
	o.pump(j.key, q)
}

// pump starts what may start in a queue, and drops it when it is empty.
func (o *order) pump(key messages.Key, q *queue) {
	for len(q.waiting) > 0 {
		j := q.waiting[0]
		if j.closes != nil {
			o.tryClose(j)
			return
		}
		if q.running >= o.parallel {
			return
		}
		q.waiting = q.waiting[1:]
		q.running++
		o.start(j)
	}
	if q.running == 0 {
		delete(o.queues, key)
	}
}

// tryClose starts a close if nothing is before it.
func (o *order) tryClose(j *job) {
	if j.cancel != nil {
		return // it runs
	}
	for _, earlier := range o.closes {
		if earlier == j {
			break
		}
		if earlier.closes.overlaps(*j.closes) {
			return
		}
	}
	for key, q := range o.queues {
		if j.closes.matches(key) && (q.running > 0 || q.waiting[0] != j) {
			return
		}
	}
	o.start(j)
}

// pattern is a set of keys: an empty field stands for all.
type pattern struct{ server, scope string }

func (p pattern) matches(key messages.Key) bool {
	return (p.server == "" || p.server == key.Server) && (p.scope == "" || p.scope == key.Scope)
}

func (p pattern) overlaps(q pattern) bool {
	return (p.server == "" || q.server == "" || p.server == q.server) && (p.scope == "" || q.scope == "" || p.scope == q.scope)
}
