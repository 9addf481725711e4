package session

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
)

// releaseOld detaches the old connection, once no call runs on it, or the time of these
// calls (graceEnds) is over. Its MCP session stays open on the server, to be resumed.
func (s *session) releaseOld() {
	if s.oldConn == nil || s.closingConn != nil {
		return
	}
	if s.calls.Running.Count > 0 && time.Now().Before(s.graceEnds) {
		s.timer.By(s.graceEnds)
		return
	}
	s.calls.CancelRunning()
	conn, timeout := s.oldConn, s.limits.CloseTimeout
	release := conn.Detach
	if conn == s.gone && !s.wanted() {
		release = conn.Close // no dial will adopt a second session that was opened beside it
	}
	s.closingConn = conn
	s.cfg.Async(&s.mailbox, func() any {
		contract.CloseWithin(timeout, release) //nolint:errcheck // its MCP session is resumed, or is closed later
		return &connDetached{conn}
	})
}

// onConnDetached notes that the old connection is detached. Its MCP session is resumed by
// the next dial. If it has expired, it is kept for a second session that was opened beside it.
func (s *session) onConnDetached(msg *connDetached) {
	if msg.conn != s.oldConn {
		return
	}
	s.oldConn, s.closingConn = nil, nil
	if msg.conn == s.gone || msg.conn.Resume() != nil {
		s.resumable = msg.conn
	}
}

// onLateDial releases the connection that the previous incarnation has dialed.
func (s *session) onLateDial(msg *dialed) {
	s.dialEnded(msg)
	s.oldConn, s.closingConn = msg.conn, nil
	s.releaseOld()
}
