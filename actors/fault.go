package actors

import (
	"fmt"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Fault is why a session cannot go on. It is the reason in Proto.Actor's
// supervision events. Its text has no secrets.
type Fault struct {
	Key messages.Key
	// Class is what went wrong: Expired, Lost, Internal for a bug, or anything
	// that dialing can come to.
	Class mcpbridge.Class
	// Dialing is true when there was no session yet, or no more.
	Dialing bool
	// Generation is that of the session that failed, or of the last before it.
	Generation uint64
	// Lived is how long the session that failed was open; 0 with Dialing.
	Lived time.Duration
	// Cause is what the bridge made of it.
	Cause *mcpbridge.Error
}

// Error returns the class and the cause.
func (f *Fault) Error() string { return f.Key.String() + ": " + f.Cause.Error() }

// Unwrap returns the cause.
func (f *Fault) Unwrap() error { return f.Cause }

// forCaller returns the cause for those who wait for the session. What was said when
// a call broke it is for the caller of that.
func (f *Fault) forCaller() string {
	if f.Dialing {
		return f.Cause.Class.String() + ": " + f.Cause.ForCaller()
	}
	return f.Cause.Error()
}

// Strategy decides what becomes of sessions that failed for a reason of their own:
// they expired, their connection broke, their dial was refused by a server that is
// there. That a server is down is not theirs to decide about. Implement it to replace
// the default of package supervisor.
type Strategy interface {
	// Decider returns the decider for a session. It is called at the first fault of
	// the session, and may return one decider for many sessions: all calls come from
	// the registry's goroutine, one after the other.
	Decider(key messages.Key) Decider
}

// Decider decides what becomes of one session, fault by fault. It must not
// block.
type Decider interface {
	Decide(f *Fault, now time.Time) Decision
}

// Decision is what a [Decider] decided.
type Decision struct {
	// GiveUp answers every call that waits with the cause, and those that come
	// within Delay at once. After that one trial may dial again; before, if the key
	// was refused for its credentials, once it has others.
	GiveUp bool
	// Delay is how long to wait before dialing again.
	Delay time.Duration
	// Attempt counts the failures that are still remembered, this one included.
	Attempt int
}

// fail is the one place that panics: it hands the session to its supervisor.
// The reason is a [Fault], or what a bug has panicked with.
func fail(reason any) {
	panic(reason)
}

// bugFault returns the fault for a panic that was none.
func bugFault(key messages.Key, reason any) *Fault {
	cause := &mcpbridge.Error{Class: mcpbridge.Internal, Detail: fmt.Sprintf("panic: %T", reason)}
	return &Fault{Key: key, Class: mcpbridge.Internal, Cause: cause}
}
