package actors

import (
	"slices"

	"github.com/mcpactor/mcpactor/messages"
)

// entry is what the registry knows of a key while the key has sessions.
type entry struct {
	current    *registration   // takes the calls; nil while all sessions drain
	draining   []*registration // the oldest first
	generation uint64          // of the last MCP session
	cancelled  cancelledCalls  // while a session is being evicted
}

// cancelledCalls are the cancellations that came while a session was being evicted: a call
// that the session hands back may be cancelled.
type cancelledCalls struct {
	ids   map[string]uint64 // by id, the serial of the last call that is cancelled
	calls map[*call]bool
	all   uint64 // the serial of the last call before all were cancelled, or 0
}

// add remembers a cancellation, unless there are already as many as the parameter most
// allows, which is the number of calls that a session can have. A caller may cancel ids
// that do not exist.
func (s *cancelledCalls) add(m *cancelCalls, most int) {
	switch {
	case m.all:
		s.all = max(s.all, m.upTo)
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

// includes reports whether a call was cancelled.
func (s *cancelledCalls) includes(k *call) bool {
	upTo, named := s.ids[k.op.RequestID()]
	return s.calls[k] || s.all > 0 && k.serial <= s.all || named && k.serial <= upTo
}

// predecessor returns an older session of the key that may still have an MCP session on
// the server, or nil. No other may be opened before the predecessor is closed.
func (e *entry) predecessor(reg *registration) *registration {
	if len(e.draining) == 0 || e.draining[0] == reg {
		return nil
	}
	return e.draining[0]
}

// closesRecord reports whether an older session of the key closes the MCP session of the record in
// the store.
func (e *entry) closesRecord() bool {
	return slices.ContainsFunc(e.draining, func(reg *registration) bool { return !reg.order.leave })
}

// entry returns the entry of a key, which it adds if there is none.
func (r *registry) entry(key messages.Key) *entry {
	e := r.entries[key]
	if e == nil {
		e = &entry{generation: r.generations.of(key)}
		r.entries[key] = e
	}
	return e
}

// currentOf returns the current session of a key, or nil.
func (r *registry) currentOf(key messages.Key) *registration {
	if e := r.entries[key]; e != nil {
		return e.current
	}
	return nil
}
