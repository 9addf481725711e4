package registry

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// onStop closes all sessions. The registry stops when they are closed.
func (r *registry) onStop() {
	if !r.table.Stopping {
		r.cfg.Logger.Info().Msg("supervisor stopping") // after the lines of what has happened before
		r.interceptors.Stop()
		r.table.Stopping = true
		r.keeper.Refuse()
		r.stops = r.closer.CloseAll(contract.Drain{Leave: r.cfg.LeaveOpen})
	}
}

// stopIfEmpty stops a registry that was told to stop, when nothing is left to wait for. Proto.Actor would
// publish a dead letter for each child that has stopped, and whose end it has not noted.
func (r *registry) stopIfEmpty() {
	if r.table.Stopping && !r.finished && r.sessions.Children+r.table.Sessions()+r.closings.Count()+r.interceptors.Count()+r.jobs.Awaited() == 0 {
		r.finished = true
		r.mailbox.PostSystemMessage(&actor.Stop{})
	}
}

// onStopped cleans up. There may be sessions and close commands left, because user code can
// stop any actor.
func (r *registry) onStopped() {
	r.finished = true
	r.interceptors.Close()
	r.timer.Stop()
	r.keeper.Stop()
	r.owners.Clear()
	r.followOwners()
	for closes := range r.closings.All() {
		r.closer.GiveUp(closes)
	}
	r.failInspections(messages.CodeClosed, protocol.Stopped)
	r.mailbox.Close(func(message any) {
		msg := actor.UnwrapEnvelopeMessage(message)
		if !r.jobs.Unread(msg, messages.CodeClosed, protocol.Stopped) && !r.interceptors.Unread(msg) && !r.lists.Unread(msg) && !r.keeper.Unread(msg) {
			r.cfg.AnswerUnread(msg, actor.UnwrapEnvelopeSender(message))
		}
	})
	left := r.closings.Leftovers.List()
	if r.stops != nil {
		left = append(left, r.stops.LeftHandles()...)
	}
	r.cfg.Stopped(left)
}
