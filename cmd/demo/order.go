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
	closes   []*closing // not done, in the order in which they came
}

// queue is the jobs and closes of one key, in the order in which they came.
type queue struct {
	waiting []any // *job or *closing
	running int
}

// closing is a close command that waits at the head of some queues until it is
// there in all of them.
type closing struct {
	job    *job
	absent int // queues in which it is not at the head yet
}

func newOrder(parallel int, start func(*job)) *order {
	return &order{parallel: parallel, start: start, queues: map[messages.Key]*queue{}}
}

// add takes a job in.
func (o *order) add(j *job) {
	if j.closes == nil {
		q := o.queue(j.key)
		q.waiting = append(q.waiting, j)
		o.pump(j.key)
		return
	}
	cl := &closing{job: j}
	o.closes = append(o.closes, cl)
	var about []messages.Key
	for key, q := range o.queues {
		if j.closes(key) {
			q.waiting = append(q.waiting, cl)
			cl.absent++
			about = append(about, key)
		}
	}
	if cl.absent == 0 {
		o.start(j)
	}
	for _, key := range about {
		o.pump(key)
	}
}

// queue returns the queue of a key. A new one begins with the closes that are
// about the key and not done: they are at its head.
func (o *order) queue(key messages.Key) *queue {
	q := o.queues[key]
	if q == nil {
		q = new(queue)
		o.queues[key] = q
		for _, cl := range o.closes {
			if cl.job.closes(key) {
				q.waiting = append(q.waiting, cl)
				if len(q.waiting) > 1 {
					cl.absent++ // it waits for the close before it
				}
			}
		}
	}
	return q
}

// remove takes a job out that has run.
func (o *order) remove(j *job) {
	if j.closes == nil {
		if q := o.queues[j.key]; q != nil && j.key.Server != "" {
			q.running--
			o.pump(j.key)
		}
		return
	}
	o.closes = slices.DeleteFunc(o.closes, func(cl *closing) bool { return cl.job == j })
	for key, q := range o.queues {
		if len(q.waiting) > 0 {
			if cl, ok := q.waiting[0].(*closing); ok && cl.job == j {
				q.waiting = q.waiting[1:]
				o.pump(key)
			}
		}
	}
}

// pump starts what may start in a queue.
func (o *order) pump(key messages.Key) {
	q := o.queues[key]
	for len(q.waiting) > 0 {
		switch next := q.waiting[0].(type) {
		case *closing:
			if q.running == 0 {
				if next.absent--; next.absent == 0 {
					o.start(next.job)
				}
			}
			return
		case *job:
			if q.running >= o.parallel {
				return
			}
			q.waiting = q.waiting[1:]
			q.running++
			o.start(next)
		}
	}
	if q.running == 0 {
		delete(o.queues, key)
	}
}
