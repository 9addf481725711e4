package supervisor

import (
	"github.com/mcpactor/mcpactor/internal/actors"
	"github.com/mcpactor/mcpactor/messages"
)

// maxFutures bounds the futures that are kept for reuse.
const maxFutures = 64

// future returns a future for one reply. One that receives notifications is not reused.
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

// release takes back a future. Only one that has received its reply may be reused:
// otherwise the reply could be taken for that of another command.
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

// closeFutures closes the futures that are kept.
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
