package session

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// A session is unheard while a front answers in place of its server: see [mcpbridge.Unheard]. Its calls are parked,
// and as long as there are any, an operation that sends nothing waits in the bridge for the server.

// becomeUnheard notes that calls have to wait.
func (s *session) becomeUnheard(e *mcpbridge.Error) {
	s.unheard = &mcpbridge.Error{
		Class: mcpbridge.Unavailable, Session: mcpbridge.Unheard, RetryAfter: e.RetryAfter,
		Detail: "the server does not answer: " + e.Detail,
	}
	s.report(&contract.Unheard{Of: s.registration, Cause: s.unheard})
}

// listen waits until the session is heard again, if it is unheard and calls wait.
func (s *session) listen() {
	if s.unheard == nil || s.listening || s.calls.Parked.Count == 0 {
		return
	}
	s.listening = true
	s.requests.listen(s.conn)
}

// onHeardAgain lets parked calls run, unless the bridge says that the session is still unheard, or has ended. What
// a connection of another kind answers to an operation that it does not know means nothing.
func (s *session) onHeardAgain(msg *heardAgain) {
	s.requests.returned()
	if msg.conn != s.conn {
		return
	}
	s.listening = false
	e := mcpbridge.AsError(msg.err)
	switch {
	case e != nil && contract.WasWithheld(e) && e.Session.HasEnded():
		s.connectionEnded(e)
	case !isUnheard(msg.err):
		s.unheard = nil
		s.report(&contract.Unheard{Of: s.registration, Cause: nil})
	case s.cfg.FailFast:
		s.failParked(s.unheard, time.Time{})
	}
}
