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
		r.stopIfEmpty(c)
	}
}

// stopIfEmpty stops a registry that was told to stop, when nothing is left to wait for.
func (r *registry) stopIfEmpty(c actor.Context) {
	if r.stopping && !r.finished && len(r.registrations)+len(r.closeCommands)+r.pending == 0 {
		r.finished = true
		c.Stop(c.Self())
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
	for closing := range r.closeCommands {
		r.onCloseDue(c, closing)
	}
	r.cfg.answerUnread(c, r.mailbox)
	r.cfg.Stopped(r.leftovers.list())
}
