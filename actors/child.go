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
	// cancels were sent while there are leaving ones: a call that one of them hands
	// back may be meant.
	cancels []*cancelled
}

// predecessor returns a session of the key, other than c, that may have a session on
// the server: no other may open one before it is gone.
func (e *entry) predecessor(c *child) *child {
	for _, l := range e.leaving {
		if l != c {
			return l
		}
	}
	return nil
}

// child is what the registry knows of one session actor. Only the registry
// touches it.
type child struct {
	key     messages.Key
	pid     *actor.PID
	server  *server // as it was configured when the child was spawned
	decider Decider // nil before its first fault

	state       messages.State
	outstanding int // calls forwarded and not settled
	calls       uint64
	unpublished int           // notifications that the publisher has not published yet
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
	case ch.slot && ch.state == messages.StateReady:
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
