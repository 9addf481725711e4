package contract

import (
	"time"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/internal/tasks"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// WalkStep is how many sessions, scopes or calls one message stands for at most. A step of that size
// takes less than a millisecond, and other messages are handled between two steps.
const WalkStep = 64

// From the registry to a session, beside [Call].
type (
	// CancelCalls cancels Call, or, if that is nil, the calls whose serial is at most UpTo.
	CancelCalls struct {
		Call   *Call
		UpTo   uint64
		Detail string // of the failures
	}
	// ScopeBound brings the binding of the scope.
	ScopeBound struct{ Bind *messages.Bind }
	// Grant allows one dial.
	Grant struct{ Generation uint64 } // of the last MCP session of the key, which may have opened since the session was spawned
	// AbandonDial aborts the dial, so that another session can dial.
	AbandonDial struct{}
	// LimitsChanged replaces the limits of the session. It comes before the first message
	// that the new limits concern: a call, a grant or a drain.
	LimitsChanged struct{ Limits *mcpbridge.Limits }
	// Directive is what the registry has decided about the last fault.
	Directive struct {
		Cause      *actors.Fault
		FailParked bool // the parked calls fail now
		GaveUp     bool // no dial before RetryAt
		RetryAt    time.Time
	}
	// ServerDown fails the parked calls, because the server is down.
	ServerDown struct {
		Cause   *mcpbridge.Error
		RetryAt time.Time
	}
	// Forget makes the session forget that its credentials were refused.
	Forget struct{}
	// Drain closes the session. The only messages that may follow are CancelCalls, and
	// another Drain, which leaves running calls less time.
	Drain struct {
		// Evict hands parked calls back to the registry, for the next session, and lets
		// running calls finish. Otherwise parked calls fail, and running calls have the
		// drain timeout.
		Evict bool
		// Restart, with Evict, gives running calls the drain timeout, and hands the settings
		// over to the next session.
		Restart bool
		// Now leaves running calls no time.
		Now bool
		// Leave leaves an MCP session that can be resumed open on the server, and its record
		// as it is.
		Leave bool
		// Moves says that another member of the cluster opens the next session: running calls
		// that are cut off are lost.
		Moves bool
	}
)

// From the registry to a session that has no connection, or has one.
type (
	// AdoptSettings brings the settings of the previous session of the key. It comes before the first grant.
	AdoptSettings struct{ Settings Settings }
)

// From a session to the registry.
type (
	// DialRequested asks for a grant. There is no connection.
	DialRequested struct{ Of Registration }
	// HandshakeAnswered says that the server has answered the handshake of a dial. The goroutine
	// of the dial sends it.
	HandshakeAnswered struct{ Of Registration }
	// AddressFound says which endpoint a dial is about to use, see [dialing.Dialing.AddressFound].
	// The goroutine of the dial sends it. The reply, [Allowed], says whether the dial may continue.
	AddressFound struct {
		Of      Registration
		Address string
	}
	// Faulted brings the fault that the session was restarted for.
	Faulted struct {
		Of    Registration
		Fault *actors.Fault
	}
	// BecameIdle returns the slot: the session has no connection, and wants none.
	BecameIdle struct{ Of Registration }
	// Opened says that there is a connection.
	Opened struct {
		Of         Registration
		Generation uint64
		Info       dial.Info
		Restarted  bool
		Expired    uint64 // the generation of the record in the store, if the server does not know that MCP session; or 0
		Elapsed    time.Duration
		Dialed     time.Duration // how long the dial took
		Lifetime   time.Duration // of the previous MCP session, if it has ended; or 0
	}
	// Notified brings a notification of the server.
	Notified struct {
		Of   Registration
		Note messages.Notification

		Heard OnTheirWay // Note counts among them
	}
	// DialAbandoned says that a dial has ended without an outcome. There is no connection.
	DialAbandoned struct{ Of Registration }
	// CallsTimedOut brings calls whose deadline has passed while there was no connection.
	// The registry answers them: it knows what the session is waiting for.
	CallsTimedOut struct {
		Of    Registration
		Calls []*Call
	}
	// CallReplayed says that a call is run again.
	CallReplayed struct {
		Of      Registration
		Op      messages.Operation
		Attempt int
	}
	// TaskChanged says that the task that a call has become has another state.
	TaskChanged struct {
		Of   Registration
		Op   messages.Operation
		Task *tasks.Task
	}
	// Unheard says that the session is unheard, and why its calls wait; or, if Cause is nil, that it is heard again.
	Unheard struct {
		Of    Registration
		Cause *mcpbridge.Error
	}
	// CallsHandedBack brings calls for the next session of the key.
	CallsHandedBack struct {
		Of    Registration
		Calls []*Call
	}
	// SessionClosed is the last message of a session.
	SessionClosed struct {
		Of        Registration
		Leftovers []Leftover    // MCP sessions that it could not close
		CleanedUp int           // how many leftovers it has closed
		Lifetime  time.Duration // of its MCP session
		Settings  Settings      // for the next session of the key, after a restart
	}
)

// MaxQueuedNotifications bounds the notifications of one session that are queued, for the
// EventStream or while the session is connecting.
const MaxQueuedNotifications = 1000

// MaxOnTheirWay bounds the notifications of one connection that are on their way to the registry, which is
// short: only a server that floods reaches it.
const MaxOnTheirWay = 1 << 14

// OnTheirWay are the notifications of a connection that the session or the registry has not handled. A
// server that sends more is too fast: the next ones are dropped.
type OnTheirWay chan struct{}

// Add adds a notification, and reports whether there was room.
func (w OnTheirWay) Add() bool {
	select {
	case w <- struct{}{}:
		return true
	default:
		return false
	}
}

// Remove removes a notification that was handled.
func (w OnTheirWay) Remove() {
	select {
	case <-w:
	default:
	}
}
