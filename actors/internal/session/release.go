package session

import (
	"errors"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/dial"
)

// releaseOld detaches the old connection when no call runs on it any longer, or at graceEnds. Its MCP session stays open on
// the server, to be resumed.
func (s *session) releaseOld() {
	if s.conns.Old == nil || s.conns.Closing != nil {
		return
	}
	if s.calls.AnyOn(s.conns.Old) && time.Now().Before(s.graceEnds) {
		s.timer.By(s.graceEnds)
		return
	}
	s.calls.CancelOn(s.conns.Old)
	conn, timeout := s.conns.Old, s.limits.CloseTimeout
	release := conn.Detach
	if s.conns.IsGone(conn) && !s.wanted() {
		release = conn.Close // no dial will adopt a second session that was opened beside it
	}
	s.conns.Closing = conn
	s.cfg.Async(&s.mailbox, func() any {
		contract.CloseWithin(timeout, release) //nolint:errcheck // its MCP session is resumed, or is closed later
		return &connDetached{conn}
	})
}

// onLateDial releases the connection that the previous incarnation has dialed.
func (s *session) onLateDial(msg *dialed) {
	s.dials.returnedLate(msg, s.limits.CloseTimeout)
	s.conns.Unwanted(msg.conn)
	s.releaseOld()
}

// onLeftClosed keeps what could not be closed. An opening whose server does not answer is reported only to whoever closes the
// session: the opening ends by itself if the server answers late.
func (s *session) onLeftClosed(msg *leftClosed) {
	s.dials.closing--
	if msg.err == nil || s.drainOrder == nil && errors.Is(msg.err, dial.ErrOpening) {
		return
	}
	s.lastMessage.Leftovers = append(s.lastMessage.Leftovers, contract.Leftover{Conn: msg.conn, Reason: msg.err.Error()})
}
