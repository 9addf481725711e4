package actors

import (
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Fault is why an incarnation of a session has ended. It is the reason in Proto.Actor's
// supervision events. Its text contains no secrets.
type Fault struct {
	Key messages.Key
	// Class is Expired, Lost, or Internal for a bug. If Dialing is true, it may be any
	// class.
	Class mcpbridge.Class
	// Dialing is true if a dial has failed, and false if an open session has.
	Dialing bool
	// Generation is that of the MCP session that has failed. If Dialing is true, it is that
	// of the previous MCP session, or 0.
	Generation uint64
	// Lived is how long the connection was open. It is 0 if Dialing is true.
	Lived time.Duration
	// Cause is the error of the bridge.
	Cause *mcpbridge.Error
}

// Error returns the key and the cause.
func (f *Fault) Error() string { return f.Key.String() + ": " + f.Cause.Error() }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Cause }

// Strategy decides about sessions that have failed for a reason of their own: they
// expired, their connection broke, or the dial was refused by a server that is up. It does
// not decide about a server that is down. Implement it to replace the default of package
// supervisor.
type Strategy interface {
	// Decider returns the decider of a session. It is called at the first fault of the
	// session, and may return the same decider for many sessions, because deciders are
	// called one at a time.
	Decider(key messages.Key) Decider
}

// Decider decides about the faults of one session. It must not block.
type Decider interface {
	// Decide decides about a fault that happened at the time now. The fault is read-only.
	Decide(f *Fault, now time.Time) Directive
}

// Directive is what a [Decider] has decided about a fault.
type Directive struct {
	// GiveUp fails the calls that wait, and those that come within Delay. After Delay, a
	// call may dial again. If the server has refused the credentials, a call may dial
	// earlier, when the credentials have changed.
	GiveUp bool
	// Delay is the time until the next dial.
	Delay time.Duration
	// Attempt counts the failures that the strategy still remembers, this one included. It
	// is reported in [messages.SessionRestarting].
	Attempt int
}
