package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// walkStep is how many sessions, scopes or calls one message stands for at most. A step of that size
// takes less than a millisecond, and other messages are handled between two of them.
const walkStep = 64

// From the registry to a session, beside [call].
type (
	// cancelCalls cancels one call, or without one those whose serial is at most upTo.
	cancelCalls struct {
		call   *call
		upTo   uint64
		detail string // of the failures
	}
	// handlerBound says which handler the scope has, or none.
	handlerBound struct{ handler *actor.PID }
	// grant allows one dial.
	grant struct{}
	// abandonDial aborts the dial, so that another session can dial.
	abandonDial struct{}
	// limitsChanged replaces the limits of the session. It comes before the first message
	// that the new limits concern: a call, a grant or a drain.
	limitsChanged struct{ limits *mcpbridge.Limits }
	// directive is what the registry has decided about the last fault.
	directive struct {
		cause      *Fault
		failParked bool // the parked calls fail now
		gaveUp     bool // no dial before retryAt
		retryAt    time.Time
	}
	// serverDown fails the parked calls, because the server is down.
	serverDown struct {
		cause   *mcpbridge.Error
		retryAt time.Time
	}
	// forget makes the session forget that its credentials were refused.
	forget struct{}
	// drain closes the session. The only messages that may follow are cancelCalls, and
	// another drain, which leaves running calls less time.
	drain struct {
		// evict hands parked calls back to the registry, for the next session, and lets
		// running calls finish. Otherwise parked calls fail, and running calls have the
		// drain timeout.
		evict bool
		// restart, with evict, gives running calls the drain timeout, and hands the settings
		// over to the next session.
		restart bool
		// now leaves running calls no time.
		now bool
		// leave leaves an MCP session that can be resumed open on the server, and its record
		// as it is.
		leave bool
		// moves says that another member of the cluster opens the next session: running calls
		// that are cut off are lost.
		moves bool
	}
)

// From the registry to a session that has no connection, or has one.
type (
	// adoptSettings brings the settings of the previous session of the key, and the
	// subscriber of its tail, or nil. It comes before the first grant.
	adoptSettings struct {
		settings settings
		tail     *actor.PID
	}
	// tailTo has the stderr of the server sent to a subscriber; nil ends that.
	tailTo struct{ subscriber *actor.PID }
)

// From a session to the registry. The field of is the registration, which sessions do not
// read.
type (
	// dialRequested asks for a grant. There is no connection.
	dialRequested struct{ of *registration }
	// handshakeAnswered says that the server has answered the handshake of a dial. The goroutine
	// of the dial sends it.
	handshakeAnswered struct{ of *registration }
	// addressFound says which endpoint a dial is about to use, see [registry.onAddressFound].
	// The goroutine of the dial sends it. The reply is addressAllowed.
	addressFound struct {
		of      *registration
		address string
	}
	// addressAllowed says whether the dial may continue.
	addressAllowed struct{ is bool }
	// faulted brings the fault that the session was restarted for.
	faulted struct {
		of    *registration
		fault *Fault
	}
	// becameIdle returns the slot: the session has no connection, and wants none.
	becameIdle struct{ of *registration }
	// opened says that there is a connection.
	opened struct {
		of         *registration
		generation uint64
		info       mcpbridge.Info
		restarted  bool
		expired    uint64 // the generation of the record in the store, if the server does not know that MCP session; or 0
		elapsed    time.Duration
		dialed     time.Duration // how long the dial took
		lifetime   time.Duration // of the previous MCP session, if it has ended; or 0
	}
	// notified brings a notification of the server.
	notified struct {
		of   *registration
		note messages.Notification

		heard onTheirWay // it is one of them
	}
	// dialAbandoned says that a dial has ended without an outcome. There is no connection.
	dialAbandoned struct{ of *registration }
	// callsTimedOut brings calls whose deadline has passed while there was no connection.
	// The registry answers them: it knows what the session is waiting for.
	callsTimedOut struct {
		of    *registration
		calls []*call
	}
	// callReplied says that one call was answered. It is part of the call.
	callReplied struct {
		of     *registration
		call   *call
		code   messages.Code // empty for a result
		waited time.Duration // until the first run, if it was run
	}
	// callReplayed says that a call is run again.
	callReplayed struct {
		of      *registration
		op      messages.Operation
		attempt int
	}
	// unheard says that the session is unheard, and its calls wait, because of an error; or, without one, that it
	// is heard again.
	unheard struct {
		of    *registration
		cause *mcpbridge.Error
	}
	// callsHandedBack brings calls for the next session of the key.
	callsHandedBack struct {
		of    *registration
		calls []*call
	}
	// sessionClosed is the last message of a session.
	sessionClosed struct {
		of        *registration
		leftovers []leftover    // MCP sessions that it could not close
		cleanedUp int           // how many leftovers it has closed
		lifetime  time.Duration // of its MCP session
		settings  settings      // for the next session of the key, after a restart
		tail      *actor.PID    // likewise, the subscriber of the tail, or nil
	}
)

// IgnoreDeadLetterLogging: the dial may have ended.
func (*addressAllowed) IgnoreDeadLetterLogging() {}

// maxQueuedNotifications bounds the notifications of one session that are queued, for the
// EventStream or while the session is connecting.
const maxQueuedNotifications = 1000

// maxOnTheirWay bounds the notifications of one connection that are on their way to the registry, which is
// short: only a server that floods reaches it.
const maxOnTheirWay = 1 << 14

// onTheirWay are the notifications of a connection that the session or the registry has not handled. A
// server that sends more is too fast: the next ones are dropped.
type onTheirWay chan struct{}

// add adds a notification, and reports whether there was room.
func (w onTheirWay) add() bool {
	select {
	case w <- struct{}{}:
		return true
	default:
		return false
	}
}

// remove removes a notification that was handled.
func (w onTheirWay) remove() {
	select {
	case <-w:
	default:
	}
}

// From a session's goroutines and timers to itself.
type (
	// dialed brings the outcome of a dial.
	dialed struct {
		conn       mcpbridge.Conn
		err        error
		generation uint64
		expired    uint64 // as in opened
		elapsed    time.Duration
	}
	// callReturned brings the outcome of one run of a call.
	callReturned struct {
		call   *call
		conn   mcpbridge.Conn
		result messages.Result
		err    error
	}
	// toolsListed says that tools/list, for the annotations of lost calls, has returned.
	toolsListed struct {
		conn mcpbridge.Conn
		err  error
	}
	// heardAgain says that an unheard session is heard again, or brings the error of the attempt to wait for that.
	heardAgain struct {
		conn mcpbridge.Conn
		err  error
	}
	// disconnected says that a connection has ended by itself.
	disconnected struct {
		from *session // the incarnation that dialed it
		err  *mcpbridge.Error
	}
	// notificationReceived brings a notification of the server.
	notificationReceived struct {
		note messages.Notification
		of   messages.Operation // whose progress it is, or nil

		heard onTheirWay // it is one of them
	}
	// connDetached says that a connection is detached.
	connDetached struct{ conn mcpbridge.Conn }
	// connClosed says that a connection is closed.
	connClosed struct {
		conn mcpbridge.Conn
		err  error
	}
	// pingReturned brings the outcome of a keepalive ping.
	pingReturned struct {
		conn mcpbridge.Conn
		err  error
	}
	// stderrReady says that there are lines of the server's stderr. The goroutine that reads
	// them sends it.
	stderrReady struct{}
	// timerFired says that a deadline or a ping may be due.
	timerFired struct{}
)

// From the registry's goroutines and timers to itself.
type (
	// backoffDue says that a backoff is over.
	backoffDue struct{ of *registration }
	// idleDue says that the idle timeout of a session may be over.
	idleDue struct{}
	// closeDue says that the time of a close command is over.
	closeDue struct{ of *closeCommand }
	// closeStepDue says that the next step of a close command is due.
	closeStepDue struct{ of *closeCommand }
)

// Stop makes the registry close all sessions, and then stop.
type Stop struct{}
