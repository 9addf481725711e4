package session

import (
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// onDisconnected ends the incarnation if its connection has ended.
func (s *session) onDisconnected(msg *disconnected) {
	if msg.from == s.incarnation {
		s.connectionEnded(msg.err)
	}
}

// connectionEnded ends the incarnation, with the fault of a connection that has ended. It
// does not return.
func (s *session) connectionEnded(e *mcpbridge.Error) {
	class := mcpbridge.Lost
	if e.Session == mcpbridge.Gone {
		class, s.gone = mcpbridge.Expired, s.conn
	}
	s.fail(&actors.Fault{Class: class, Cause: e})
}

// noteGone notes that the server no longer knows the MCP session of a connection, if an error says so. Calls may not run on
// the connection any longer.
func (s *session) noteGone(conn mcpbridge.Conn, e *mcpbridge.Error) {
	if e != nil && e.Session == mcpbridge.Gone && slices.Contains([]mcpbridge.Conn{s.conn, s.oldConn, s.resumable}, conn) {
		s.gone = conn
	}
}

// stableAfter is how long a connection must last before a session without calls is
// reopened once more.
const stableAfter = time.Minute

// fail ends the incarnation with a fault. It does not return.
func (s *session) fail(f *actors.Fault) {
	if f.Class == mcpbridge.Expired {
		s.stateless = false // the next MCP session is another one
	}
	f.Key, f.Generation = s.key, s.generation
	s.cause, s.failedAt = f, time.Now()
	if !f.Dialing {
		s.lostAt, f.Lived = s.failedAt, s.failedAt.Sub(s.openedAt)
		s.openedUnused = s.openedUnused && f.Lived < stableAfter
	}
	contract.Fail(f)
}
