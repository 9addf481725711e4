package session

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
)

// releaseOld detaches the old connection, once no call runs on it, or the time of these
// calls (graceEnds) is over. Its MCP session stays open on the server, to be resumed.
func (s *session) releaseOld() {
	if s.conns.Old == nil || s.conns.Closing != nil {
		return
	}
	if s.calls.Running.Count > 0 && time.Now().Before(s.graceEnds) {
		s.timer.By(s.graceEnds)
		return
	}
	s.calls.CancelRunning()
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
	s.dialEnded(msg)
	s.conns.Unwanted(msg.conn)
	s.releaseOld()
}
