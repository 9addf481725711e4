package main

import (
	"slices"

	"github.com/mcpactor/mcpactor/messages"
)

// order decides whose turn it is: the jobs of one key run as they came, at most
// so many at once; those of different keys at the same time. A job that spans
// keys, such as a close, waits for the earlier jobs of these, and the later ones wait
// for it.
type order struct {
	parallel int
	start    func(*job)
	queues   map[messages.Key]*queue
	spans    []*job // those that span keys and are not done, in the order in which they came
}

// queue is what waits for one key, in the order in which it came. A job that
// spans keys stands in the queues of all of them until it is done.
type queue struct {
	waiting []*job
	running int
}

func newOrder(parallel int) *order {
	return &order{parallel: parallel, queues: map[messages.Key]*queue{}}
}

// add takes a job in.
func (o *order) add(j *job) {
	if j.spans != nil {
		o.spans = append(o.spans, j)
		for key, q := range o.queues {
			if j.spans.matches(key) {
				q.waiting = append(q.waiting, j)
			}
		}
		o.trySpan(j)
		return
	}
	q := o.queues[j.key]
	if q == nil {
		q = new(queue)
		o.queues[j.key] = q
		for _, c := range o.spans {
			if c.spans.matches(j.key) {
				q.waiting = append(q.waiting, c)
			}
		}
	}
	q.waiting = append(q.waiting, j)
	o.pump(j.key, q)
}

// remove takes a job out that has run.
func (o *order) remove(j *job) {
	if j.spans == nil {
		q := o.queues[j.key]
		q.running--
		o.pump(j.key, q)
		return
	}
	o.spans = slices.DeleteFunc(o.spans, func(c *job) bool { return c == j })
	for key, q := range o.queues {
		if j.spans.matches(key) {
			q.waiting = q.waiting[1:]
			o.pump(key, q)
		}
	}
	for _, c := range slices.Clone(o.spans) {
		o.trySpan(c)
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
		if j.spans != nil {
			o.trySpan(j)
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

// trySpan starts a job that spans keys if nothing is before it.
func (o *order) trySpan(j *job) {
	if j.cancel != nil {
		return // it runs
	}
	for _, earlier := range o.spans {
		if earlier == j {
			break
		}
		if earlier.spans.overlaps(*j.spans) {
			return
		}
	}
	for key, q := range o.queues {
		if j.spans.matches(key) && (q.running > 0 || q.waiting[0] != j) {
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
