package actors

import (
	"container/list"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// entry is a key that has a session, or had one that is still closing.
type entry struct {
	current    *child   // takes the calls; nil when all are leaving
	leaving    []*child // told to drain
	generation uint64   // of the last session
	cancels    cancels
}

// cancels are the cancellations that were sent while a session was being evicted: a
// call that it hands back may be meant.
type cancels struct {
	ids   map[string]uint64 // the last operation that had come before it
	calls map[*call]bool
}

// add remembers a cancellation, unless there are as many as the session can have had
// calls: then some are of calls that it never had.
func (s *cancels) add(m *cancelled, most int) {
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
func (s *cancels) mean(k *call) bool {
	upTo, named := s.ids[k.op.RequestID()]
	return s.calls[k] || named && k.serial <= upTo
}

// predecessor returns a session of the key, older than c, that may have a session on
// the server: no other may open one before it is gone.
func (e *entry) predecessor(c *child) *child {
	if len(e.leaving) == 0 || e.leaving[0] == c {
		return nil
	}
	return e.leaving[0]
}

// child is what the registry knows of one session actor. Only the registry
// touches it.
type child struct {
	key     messages.Key
	pid     *actor.PID
	server  *server // as it was configured when the child was spawned
	decider Decider // nil before its first fault

	serial       uint64 // in the order of their making
	group        *group
	older, newer *child        // of the same server
	stage        place[*child] // in its group, by state
	tallies      []*tally      // close commands that wait for it

	waiting     int // of outstanding, how many wait: see [registry.recount]
	outstanding int // calls forwarded and not settled
	calls       uint64
	used        time.Time     // when that last changed
	place       place[*child] // in the LRU order

	generation uint64
	info       mcpbridge.Info // of the last session
	served     bool           // it has been open

	slot     bool          // counts under the cap: it dials, or has a connection
	wants    bool          // waits for a grant
	elem     *list.Element // its place in the queue of its server; nil while it is not there
	dialing  bool          // has a grant and a dial permit
	dialed   time.Time     // when it got the last grant
	probing  bool          // that was while the server was down
	starting bool          // has a permit to start a process
	leaving  bool          // told to drain
	evicted  bool          // the drain was an eviction
	ending   bool          // it ends sessions that nobody uses: see [unended]
	left     []unended     // which of them could not be ended before

	startTimer *time.Timer // sends startOver

	bugs      int         // since it was opened last
	refusals  int         // dials that failed while others got through
	cause     *Fault      // the last one; nil while it is open
	notBefore time.Time   // when it may dial again
	openUntil time.Time   // its circuit breaker is open until then
	timer     *time.Timer // sends due
}

// rank returns where the child stands in the LRU order.
func (ch *child) rank() rank {
	switch {
	case ch.leaving:
		return unranked
	case ch.slot && ch.outstanding == 0:
		return unused
	case ch.slot && ch.state() == messages.StateReady:
		return inUse
	case ch.outstanding == 0:
		return resting
	}
	return unranked
}

// asks reports whether the child may dial although it was given up: its credentials
// were refused, and may be others by now.
func (ch *child) asks() bool {
	return ch.cause != nil && ch.cause.Class == mcpbridge.Unauthorized && ch.server.Auth != nil
}

// protocol returns the version that was agreed on, or "".
func (ch *child) protocol() string {
	if ch.info.Server == nil {
		return ""
	}
	return ch.info.Server.ProtocolVersion
}

// broken reports whether the circuit breaker is open.
func (ch *child) broken(now time.Time) bool {
	return ch.cause != nil && now.Before(ch.openUntil)
}

// idles reports whether the child neither has a connection nor dials.
func (ch *child) idles() bool {
	return ch.state() == messages.StateWaiting || ch.state() == messages.StateBroken
}
