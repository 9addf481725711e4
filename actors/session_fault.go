package actors

import (
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

// onDisconnected ends an incarnation whose connection ended by itself.
func (s *session) onDisconnected(msg *disconnected) {
	if msg.from == s {
		s.connectionEnded(msg.err)
	}
}

// connectionEnded hands the session to its supervisor.
func (s *session) connectionEnded(e *mcpbridge.Error) {
	class := mcpbridge.Lost
	if e.Session == mcpbridge.Gone {
		class = mcpbridge.Expired
	}
	s.fail(&Fault{Class: class, Cause: e})
}

// stableAfter is how long a session has to be open before one that nobody calls is
// opened again more than once.
const stableAfter = time.Minute

// fail ends the incarnation. It does not return.
func (s *session) fail(f *Fault) {
	f.Key, f.Generation = s.key, s.generation
	s.cause, s.failedAt = f, time.Now()
	if !f.Dialing {
		s.lostAt, f.Lived = s.failedAt, s.failedAt.Sub(s.openedAt)
		s.openedUnused = s.openedUnused && f.Lived < stableAfter
	}
	fail(f)
}
