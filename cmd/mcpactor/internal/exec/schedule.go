package exec

import (
	"slices"

	"github.com/mcpactor/mcpactor/messages"
)

// schedule decides when each job starts. Jobs of one key start in the order of their
// arrival, and at most parallel of them run at once. Jobs of different keys do not wait for
// each other. A job that spans keys, such as a close, waits for the earlier jobs of all
// these keys, and their later jobs wait for it.
type schedule struct {
	parallel int
	start    func(*job)
	queues   map[messages.Key]*queue
	spanning []*job // the unfinished jobs that span keys, in the order of their arrival
}

// queue has the jobs of one key that have not started, in the order of their arrival. A
// job that spans keys stays in the queues of all these keys until it has finished.
type queue struct {
	waiting []*job
	running int
}

func newSchedule(parallel int) *schedule {
	return &schedule{parallel: parallel, queues: map[messages.Key]*queue{}}
}

// add adds a job, and starts it if nothing is before it.
func (s *schedule) add(j *job) {
	if j.spans != nil {
		s.spanning = append(s.spanning, j)
		for key, q := range s.queues {
			if j.spans.matches(key) {
				q.waiting = append(q.waiting, j)
			}
		}
		s.startSpanning(j)
		return
	}
	q := s.queues[j.key]
	if q == nil {
		q = new(queue)
		s.queues[j.key] = q
		for _, spanning := range s.spanning {
			if spanning.spans.matches(j.key) {
				q.waiting = append(q.waiting, spanning)
			}
		}
	}
	q.waiting = append(q.waiting, j)
	s.startWaiting(j.key, q)
}

// finish removes a job that has run, and starts those that waited for it.
func (s *schedule) finish(j *job) {
	if j.spans == nil {
		q := s.queues[j.key]
		q.running--
		s.startWaiting(j.key, q)
		return
	}
	s.spanning = slices.DeleteFunc(s.spanning, func(other *job) bool { return other == j })
	for key, q := range s.queues {
		if j.spans.matches(key) {
			q.waiting = q.waiting[1:]
			s.startWaiting(key, q)
		}
	}
	for _, other := range slices.Clone(s.spanning) {
		s.startSpanning(other)
	}
}

// drop removes a job of one key that has not started.
func (s *schedule) drop(j *job) {
	q := s.queues[j.key]
	q.waiting = slices.DeleteFunc(q.waiting, func(other *job) bool { return other == j })
	s.startWaiting(j.key, q)
}

// startWaiting starts the jobs of a queue that may start, and deletes the queue if nothing
// is left of it.
func (s *schedule) startWaiting(key messages.Key, q *queue) {
	for len(q.waiting) > 0 {
		j := q.waiting[0]
		if j.spans != nil {
			s.startSpanning(j)
			return
		}
		if q.running >= s.parallel {
			return
		}
		q.waiting = q.waiting[1:]
		q.running++
		s.start(j)
	}
	if q.running == 0 {
		delete(s.queues, key)
	}
}

// startSpanning starts a job that spans keys if no earlier job of these keys is unfinished.
func (s *schedule) startSpanning(j *job) {
	if j.cancel != nil {
		return // it has started
	}
	for _, earlier := range s.spanning {
		if earlier == j {
			break
		}
		if earlier.spans.overlaps(*j.spans) {
			return
		}
	}
	for key, q := range s.queues {
		if j.spans.matches(key) && (q.running > 0 || q.waiting[0] != j) {
			return
		}
	}
	s.start(j)
}

// keySet is a set of keys. An empty field matches any value.
type keySet struct{ server, scope string }

func (k keySet) matches(key messages.Key) bool {
	return (k.server == "" || k.server == key.Server) && (k.scope == "" || k.scope == key.Scope)
}

func (k keySet) overlaps(other keySet) bool {
	return (k.server == "" || other.server == "" || k.server == other.server) && (k.scope == "" || other.scope == "" || k.scope == other.scope)
}
