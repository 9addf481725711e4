package actors

import (
	"github.com/mcpactor/mcpactor/messages"
)

// entry is a key that has a session, or had one that is still closing.
type entry struct {
	current    *registration   // takes the calls; nil when all are leaving
	draining   []*registration // told to drain
	generation uint64          // of the last session
	cancelled  cancelledCalls
}

// cancels are the cancellations that were sent while a session was being evicted: a
// call that it hands back may be meant.
type cancelledCalls struct {
	ids   map[string]uint64 // the last operation that had come before it
	calls map[*call]bool
}

// add remembers a cancellation, unless there are as many as the session can have had
// calls: then some are of calls that it never had.
func (s *cancelledCalls) add(m *cancelCalls, most int) {
	switch {
	case len(s.ids)+len(s.calls) >= most:
	case m.call != nil:
		if s.calls == nil {
			s.calls = map[*call]bool{}
		}
		s.calls[m.call] = true
	default:
		if s.ids == nil {
			s.ids = map[string]uint64{}
		}
		s.ids[m.id] = m.upTo
	}
}

// mean reports whether a call was cancelled.
func (s *cancelledCalls) includes(k *call) bool {
	upTo, named := s.ids[k.op.RequestID()]
	return s.calls[k] || named && k.serial <= upTo
}

// predecessor returns a session of the key, older than c, that may have a session on
// the server: no other may open one before it is gone.
func (e *entry) predecessor(c *registration) *registration {
	if len(e.draining) == 0 || e.draining[0] == c {
		return nil
	}
	return e.draining[0]
}

// entry returns the entry of a key, which is made if need be.
func (r *registry) entry(key messages.Key) *entry {
	e := r.entries[key]
	if e == nil {
		e = &entry{generation: r.generations.of(key)}
		r.entries[key] = e
	}
	return e
}
