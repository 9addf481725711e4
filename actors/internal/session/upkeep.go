package session

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// keepAlive sends a ping, and saves the record of the MCP session, if that is due.
func (s *session) keepAlive() {
	if e := s.keepalive.pingIfDue(s.conns.Current); e != nil {
		s.connectionEnded(e)
	}
	s.saver.saveIfDue(s.conns.Current)
}

// onPingReturned ends the incarnation if a ping says that the connection has ended.
func (s *session) onPingReturned(msg *pingReturned) {
	e := mcpbridge.AsError(msg.err)
	s.conns.NoteGone(msg.conn, e)
	if msg.conn == s.conns.Current && s.keepalive.returned(e) {
		s.connectionEnded(e)
	}
}

// onHeardAgain lets parked calls run, unless the bridge says that the session is still unheard, or has ended. Any other
// error means nothing: a connection of another kind may not know the operation.
func (s *session) onHeardAgain(msg *heardAgain) {
	s.requests.returned()
	if msg.conn != s.conns.Current {
		return
	}
	s.unheard.listening = false
	e := mcpbridge.AsError(msg.err)
	switch {
	case e != nil && contract.WasWithheld(e) && e.Session.HasEnded():
		s.connectionEnded(e)
	case !isUnheard(msg.err):
		s.unheard.cause = nil
		s.out.report(&contract.Unheard{Of: s.out.of, Cause: nil})
	case s.cfg.FailFast:
		s.failParked(s.unheard.cause, time.Time{})
	}
}
