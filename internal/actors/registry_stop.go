package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// onStop closes all sessions. The registry stops when they are closed.
func (r *registry) onStop(c actor.Context) {
	if !r.stopping {
		r.stopping = true
		r.drainNext(c, r.newCloseCommand(c, &messages.CloseAll{}, anyKey, drain{leave: r.cfg.LeaveOpen}))
		r.stopIfEmpty()
	}
}

// stopIfEmpty stops a registry that was told to stop, when nothing is left to wait for. Proto.Actor would
// publish a dead letter for each child that has stopped, and whose end it has not noted.
func (r *registry) stopIfEmpty() {
	if r.stopping && !r.finished && r.children+len(r.registrations)+len(r.closings.all)+r.pending == 0 {
		r.finished = true
		r.mailbox.PostSystemMessage(&actor.Stop{})
	}
}

// onStopped cleans up. There may be sessions and close commands left, because user code can
// stop any actor.
func (r *registry) onStopped(c actor.Context) {
	r.finished = true
	r.stopIdleTimer()
	if r.cancellations.timer != nil {
		r.cancellations.timer.Stop()
	}
	r.releaseOwners(c)
	for _, reg := range r.registrations {
		r.dequeue(reg)
		r.returnStartPermit(reg)
		reg.stopBackoffTimer()
	}
	for closing := range r.closings.all {
		r.onCloseDue(c, closing)
	}
	r.failListings(messages.CodeClosed, stoppedDetail)
	r.mailbox.Close(r.cfg.answer)
	r.cfg.Stopped(r.leftovers.list())
}
