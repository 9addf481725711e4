package session

import (
	"errors"
	"time"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/messages"
)

// onGrant dials.
func (s *session) onGrant(msg *contract.Grant) {
	s.last.generation = max(s.last.generation, msg.Generation)
	on := callbacks{
		cfg: s.cfg, system: s.system, session: &s.mailbox, registry: s.out.registry, of: s.out.of,
		key: s.key, incarnation: s.incarnation, timeout: s.limits.HandlerTimeout,
	}
	req := on.request()
	if s.server.PerKey != nil {
		req.Resolved = on.resolved
	}
	req.Roots, req.Capabilities, req.Introduction = s.subscribers.Roots, s.bind.Capabilities, s.bind.Introduction
	req.Resume, req.Refused = s.conns.Resume(), s.credentials.refusal()
	if s.calls.Parked.Count > 0 {
		head := s.calls.Parked.First().Op.Head()
		req.Attributes, req.Trace = head.Attributes, head.Trace
	}
	s.dials.start(s.store.Life, dialAttempt{
		limits: s.limits, store: &s.store, req: req,
		setup: s.server.Setup, ops: s.subscribers.Operations(), previous: s.conns.Resumable,
		last: s.last, reopens: s.history.wasOpen,
	})
}

// onDialed takes the connection, or fails. It returns false if the dial was given up, which says nothing about the server.
func (s *session) onDialed(msg *dialed) (isOpen bool) {
	s.dials.returned(msg, s.limits.CloseTimeout)
	switch {
	case s.credentials.endedDial(msg.err):
		s.failParked(s.credentials.refused, s.credentials.until)
		s.endDial(nil)
		return false
	case errors.Is(msg.err, errServerDown):
		s.endDial(nil)
		return false
	case msg.err != nil:
		e := dial.AsError(msg.err)
		s.fail(&actors.Fault{Class: e.Class, Dialing: true, Cause: e})
	}
	s.expireParked(time.Now()) // those that may not wait have not got this connection in time
	s.conns.Opened(msg.conn)
	s.credentials.refused = nil
	info, isNew := msg.conn.Info(), msg.generation != s.last.generation
	opened := &contract.Opened{Of: s.out.of, Generation: msg.generation, Info: info, Expired: msg.expired, Elapsed: msg.elapsed, Dialed: msg.elapsed}
	if isNew {
		opened.Lifetime = s.history.lifetime() // of the previous MCP session
	}
	if missed, again := s.history.opened(isNew, s.calls.Parked.Count == 0); again {
		opened.Restarted, opened.Elapsed = true, missed
	}
	s.last.generation, s.last.saved, s.last.stateless = msg.generation, msg.saved, info.Stateless
	s.out.report(opened)
	for _, uri := range msg.missed {
		s.onNotification(&notificationReceived{note: &messages.ResourceUpdated{URI: uri}})
	}
	for _, h := range s.early.notes {
		s.onNotification(h)
	}
	s.early.notes = nil
	if s.early.end != nil {
		s.connectionEnded(s.early.end)
	}
	s.keepalive.schedule()
	s.saver.schedule()
	s.requests.cancelTasks(s.conns.Current, s.limits.CloseTimeout)
	return true
}

// onAbandoned takes the outcome of an aborted dial.
func (s *session) onAbandoned(msg *dialed) {
	s.dials.returnedLate(msg, s.limits.CloseTimeout)
	if s.credentials.endedDial(msg.err) {
		s.failParked(s.credentials.refused, s.credentials.until)
	}
	s.endDial(msg.conn)
}

// endDial ends a dial whose outcome says nothing about the server. Its connection, if there
// is one, is released.
func (s *session) endDial(conn dial.Conn) {
	s.early = early{}
	s.out.report(&contract.DialAbandoned{Of: s.out.of})
	if conn != nil {
		s.conns.Unwanted(conn)
		s.releaseOld()
	}
}
