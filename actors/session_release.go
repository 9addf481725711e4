package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// releaseOld lets the old connection go, once no call runs on it any more or their
// grace is over. Its session is left open on the server, to be resumed.
func (s *session) releaseOld(c actor.Context) {
	if s.oldConn == nil || s.closingConn != nil {
		return
	}
	if s.running.count > 0 && time.Now().Before(s.graceEnds) {
		s.wakeBy(c, s.graceEnds)
		return
	}
	s.cancelRunning()
	conn, timeout := s.oldConn, s.cfg.CloseTimeout
	s.closingConn = conn
	s.cfg.async(c, func() any {
		closeWithin(timeout, conn.Detach) //nolint:errcheck // its session is resumed, or is closed later
		return &connDetached{conn}
	})
}

// onConnDetached notes that the old connection is released. Its session may be resumed.
func (s *session) onConnDetached(msg *connDetached) {
	if msg.conn != s.oldConn {
		return
	}
	s.oldConn, s.closingConn = nil, nil
	if (s.cause == nil || s.cause.Class != mcpbridge.Expired) && msg.conn.Resume() != nil {
		s.resumable = msg.conn
	}
}

// onLateDial releases the connection that the incarnation before had dialed.
func (s *session) onLateDial(c actor.Context, msg *dialed) {
	s.abortDial, s.oldConn, s.closingConn = nil, msg.conn, nil
	s.generation = max(s.generation, msg.generation)
	s.releaseOld(c)
}
