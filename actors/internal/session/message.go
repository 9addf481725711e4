package session

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// From a session's goroutines and timers to itself.
type (
	// dialed brings the outcome of a dial.
	dialed struct {
		conn       dial.Conn
		err        error
		left       dial.Conn // by a dial that failed, or nil: see [dial.LeftBy]
		generation uint64
		saved      bool     // the store has the MCP session
		expired    uint64   // as in Opened
		missed     []string // resources that are subscribed, and may have changed meanwhile
		elapsed    time.Duration
	}
	// callReturned brings the outcome of one run of a call.
	callReturned struct {
		call   *contract.Call
		conn   dial.Conn
		result messages.Result
		err    error
	}
	// toolsListed says that tools/list, for the annotations of lost calls, has returned.
	toolsListed struct {
		conn dial.Conn
		err  error
	}
	// heardAgain says that an unheard session is heard again, or brings the error of the wait.
	heardAgain struct {
		conn dial.Conn
		err  error
	}
	// taskCancelled says that tasks/cancel has returned.
	taskCancelled struct{}
	// disconnected says that a connection has ended by itself.
	disconnected struct {
		from int // the incarnation that dialed it
		err  *mcpbridge.Error
	}
	// notificationReceived brings a notification of the server.
	notificationReceived struct {
		note messages.Notification
		of   messages.Operation // whose progress it is, or nil

		heard contract.OnTheirWay // the note counts among them
	}
	// connDetached says that a connection is detached.
	connDetached struct{ conn dial.Conn }
	// connClosed says that a connection is closed.
	connClosed struct {
		conn dial.Conn
		err  error
	}
	// leftClosed says that the connection that a dial has left is closed, or brings the error.
	leftClosed struct {
		conn dial.Conn
		err  error
	}
	// recordSaved says whether the store has taken the record that it did not take when the connection was opened.
	recordSaved struct {
		conn  dial.Conn
		saved bool
	}
	// pingReturned brings the outcome of a keepalive ping.
	pingReturned struct {
		conn dial.Conn
		err  error
	}
	// timerFired says that a deadline or a ping may be due.
	timerFired struct{}
)
