package actors

import (
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// From the registry to a session, beside [call].
type (
	// cancelCalls gives up the calls with an id that came before it, or one call.
	cancelCalls struct {
		id   string
		upTo uint64
		call *call
	}
	// grant allows one dial.
	grant struct{}
	// abandonDial gives up a dial: another one is to try.
	abandonDial struct{}
	// directive is what was decided about the last fault.
	directive struct {
		cause      *Fault
		failParked bool // the calls that wait are not to wait any longer
		gaveUp     bool // those that come before retryAt are failed at once
		retryAt    time.Time
	}
	// serverDown fails the calls that wait: the server is down.
	serverDown struct {
		cause   *mcpbridge.Error
		retryAt time.Time
	}
	// drain is the end of a session. It is the last message to it, but for
	// another drain that is less patient.
	drain struct {
		// evict hands calls that wait back to the registry, for the successor,
		// and lets those in flight finish. Otherwise those that wait are
		// refused, and those in flight have the drain timeout.
		evict bool
		// leave leaves a session open on the server that can be resumed.
		leave bool
	}
)

// From a session to the registry. of is the registry's, and opaque to sessions.
type (
	// dialRequested asks for a grant. There is no connection at this moment.
	dialRequested struct{ of *registration }
	// faulted tells, after a restart, why.
	faulted struct {
		of    *registration
		fault *Fault
	}
	// becameIdle gives back slot and wish: there is no connection, and none wanted.
	becameIdle struct{ of *registration }
	// opened tells that there is a connection.
	opened struct {
		of         *registration
		generation uint64
		info       mcpbridge.Info
		restarted  bool
		expired    uint64 // the generation that was remembered, and that the server does not know; or 0
		elapsed    time.Duration
	}
	// notified passes on what the server has said by itself.
	notified struct {
		of   *registration
		note messages.Notification
	}
	// dialAbandoned tells that a dial has ended without an outcome. There is no connection.
	dialAbandoned struct{ of *registration }
	// callsTimedOut returns calls whose deadline passed while there was no connection, for
	// the registry to answer: it knows what they have waited for.
	callsTimedOut struct {
		of    *registration
		calls []*call
	}
	// callReplied tells that one call was answered.
	callReplied struct{ of *registration }
	// handback returns calls that a successor shall serve.
	handback struct {
		of    *registration
		calls []*call
	}
	// sessionClosed is a session's last message.
	sessionClosed struct {
		of        *registration
		leftovers []leftover // what it could not end
		cleanedUp int        // how many it has ended that were not its own
	}
)

// From a session's goroutines and timers to itself.
type (
	// dialed is the end of a dial.
	dialed struct {
		conn       mcpbridge.Conn
		err        error
		generation uint64
		expired    uint64 // the generation of a remembered session that is gone, or 0
		elapsed    time.Duration
	}
	// callReturned is the end of one run of a call.
	callReturned struct {
		call   *call
		conn   mcpbridge.Conn
		result messages.Result
		err    error
	}
	// toolsListed is the end of listing the tools, for the annotations of lost calls.
	toolsListed struct {
		conn mcpbridge.Conn
		err  error
	}
	// disconnected tells that a connection ended by itself.
	disconnected struct {
		from *session // the incarnation that dialed it
		err  *mcpbridge.Error
	}
	// notificationReceived is what the server has said by itself.
	notificationReceived struct {
		note messages.Notification
		of   messages.Operation // that it is the progress of, or nil
	}
	// connDetached is the end of releasing a connection.
	connDetached struct{ conn mcpbridge.Conn }
	// connClosed is the end of closing a connection.
	connClosed struct {
		conn mcpbridge.Conn
		err  error
	}
	// pingReturned is the answer to a keepalive ping.
	pingReturned struct {
		conn mcpbridge.Conn
		err  error
	}
	// timerFired says that something of the session may be due.
	timerFired struct{}
)

// IgnoreDeadLetterLogging: it may come when the session has ended already.
func (*disconnected) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging: as above.
func (*notificationReceived) IgnoreDeadLetterLogging() {}

// From the registry's goroutines and timers to itself.
type (
	// backoffDue says that a backoff is over.
	backoffDue struct{ of *registration }
	// idleDue says that the idle timeout may have passed for someone.
	idleDue struct{}
	// closeDue says that a close command was not done in time.
	closeDue struct{ of *closeCommand }
	// closeStepDue says that a close command may go on.
	closeStepDue struct{ of *closeCommand }
)

// Stop tells the registry to close everything, and then to stop.
type Stop struct{}
