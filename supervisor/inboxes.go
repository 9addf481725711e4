package supervisor

import (
	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/messages"
)

// maxInboxes bounds the inboxes that are kept to be used again.
const maxInboxes = 64

// inbox returns an inbox for one reply. With notes it is a new one.
func (s *Supervisor) inbox(notes chan<- messages.Notification) *actors.Inbox {
	if notes == nil {
		select {
		case box := <-s.inboxes:
			return box
		default:
		}
	}
	return actors.NewInbox(s.system, notes)
}

// release takes an inbox back. It may be used again only after it has had its reply:
// there is no other that could be taken for that of another command.
func (s *Supervisor) release(box *actors.Inbox, again bool) {
	if again {
		select {
		case s.inboxes <- box:
			if s.stopped() {
				s.closeInboxes()
			}
			return
		default:
		}
	}
	box.Close()
}

// closeInboxes closes those that are kept.
func (s *Supervisor) closeInboxes() {
	for {
		select {
		case box := <-s.inboxes:
			box.Close()
		default:
			return
		}
	}
}
