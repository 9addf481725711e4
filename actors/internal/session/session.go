// Package session has the session actor, which owns the connection of one key. A registry spawns
// it with [Props].
package session

import (
	"time"
)

// session is one incarnation of the session actor, which owns the connection of a key.
//
//	start ──▶ idle ◀──▶ queued ──grant──▶ connecting ──dialed──▶ ready
//	            ▲          ▲               │   │                   │
//	            └────┬─────┘   AbandonDial │   │                   │
//	                 │                     ▼   │                   │
//	             releasing ◀────── abandoning  │                   │
//	                 ▲                         │                   │
//	                 └─────────────────────────┴───────fault───────┘
//
//	any state ──drain──▶ draining ──▶ closed
//
// releasing is skipped if there is no connection to release, and no directive to await. To callers, idle, queued
// and releasing are [messages.StateWaiting], or [messages.StateBroken] after the
// strategy has given up the session; connecting and abandoning are
// [messages.StateConnecting]. Calls are accepted in all states before draining. Deadlines
// and cancellations are served in all states before closed.
type session struct {
	*durable
	state func(message any) // the behavior: a method below, from releasing to closed

	early early // while connecting

	undirected bool // the directive about the last fault is awaited
	reopen     bool // after the directive: a connection is wanted even if no call is parked

	// While ready:
	keepalive   keepalive
	saver       saver
	unheard     unheard
	awaitsTools bool // tools/list runs, for calls that were lost
	toolLists   int  // how often it has returned, or maxToolLists if it is not asked for again

	graceEnds time.Time // when calls that run on conns.Old, or while draining, are cut off
}

// newSession returns the next incarnation of a session.
func newSession(d *durable) *session {
	d.incarnation++
	d.conns.Closing = nil
	return &session{
		durable:   d,
		keepalive: keepalive{cfg: d.cfg, to: &d.mailbox, timer: &d.timer, every: d.server.KeepAlive},
		saver:     saver{store: &d.store, to: &d.mailbox, timer: &d.timer, last: &d.last},
	}
}

// wanted reports whether a connection is wanted.
func (s *session) wanted() bool { return s.reopen || s.calls.Parked.Count > 0 }
