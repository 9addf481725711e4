package session

import (
	"time"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// connectionEnded ends the incarnation, with the fault of a connection that has ended. It
// does not return.
func (s *session) connectionEnded(e *mcpbridge.Error) {
	class := mcpbridge.Lost
	if e.Session == mcpbridge.Gone {
		class = mcpbridge.Expired
		s.conns.NoteGone(s.conns.Current, e)
	}
	s.fail(&actors.Fault{Class: class, Cause: e})
}

// fail ends the incarnation with a fault. It does not return.
func (s *session) fail(f *actors.Fault) {
	if f.Class == mcpbridge.Expired {
		s.last.stateless = false // the next MCP session is another one
	}
	f.Key, f.Generation = s.key, s.last.generation
	s.cause, s.failedAt = f, time.Now()
	if !f.Dialing {
		f.Lived = s.history.ended(s.failedAt)
	}
	contract.Fail(f)
}
