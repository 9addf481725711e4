package session

import (
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// unheard says whether a session is unheard: a front answers in place of its server, see [mcpbridge.Unheard]. The
// calls of the session are parked then, and as long as there are any, an operation that sends nothing waits in the bridge for
// the server.
type unheard struct {
	cause     *mcpbridge.Error // why calls wait for the server, or nil if the session is heard
	listening bool             // heardAgain will come
}

// begin notes that calls have to wait.
func (u *unheard) begin(e *mcpbridge.Error) {
	u.cause = &mcpbridge.Error{
		Class: mcpbridge.Unavailable, Session: mcpbridge.Unheard, RetryAfter: e.RetryAfter,
		Detail: "the server does not answer: " + e.Detail,
	}
}

// wantsToListen reports whether the session is unheard, calls wait, and nothing waits for the server yet.
func (u *unheard) wantsToListen(waiting int) bool {
	return u.cause != nil && !u.listening && waiting > 0
}
