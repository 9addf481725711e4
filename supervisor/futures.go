package supervisor

import (
	"github.com/mcpactor/mcpactor/internal/actors"
	"github.com/mcpactor/mcpactor/messages"
)

// maxInboxes bounds the inboxes that are kept to be used again.
const maxFutures = 64

// inbox returns an inbox for one reply. With notes it is a new one.
func (s *Supervisor) future(notes chan<- messages.Notification) *actors.Future {
	if notes == nil {
		select {
		case box := <-s.futures:
			return box
		default:
		}
	}
	return actors.NewFuture(s.system, notes)
}

// release takes an inbox back. It may be used again only after it has had its reply:
// there is no other that could be taken for that of another command.
func (s *Supervisor) release(box *actors.Future, again bool) {
	if again {
		select {
		case s.futures <- box:
			if s.stopped() {
				s.closeFutures()
			}
			return
		default:
		}
	}
	box.Close()
}

// closeInboxes closes those that are kept.
func (s *Supervisor) closeFutures() {
	for {
		select {
		case box := <-s.futures:
			box.Close()
		default:
			return
		}
	}
}
