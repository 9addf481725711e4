package registry

import (
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
)

// onSessionClosed stops the actor of a session that is closed.
func (r *registry) onSessionClosed(msg *contract.SessionClosed) {
	if reg := table.Of(msg.Of); r.table.WithPID(reg.PID) == reg {
		reg.Mailbox.PostSystemMessage(&actor.Stop{})
		if msg.CleanedUp > 0 {
			r.dialing.ServerUp(reg)
		}
		r.sessions.HandSettingsOver(msg)
		r.finishSession(msg)
	}
}

// onTerminated removes a session whose actor was stopped by other code, or what belongs to an
// owner that has terminated.
func (r *registry) onTerminated(msg *actor.Terminated) {
	if strings.HasPrefix(msg.Who.Id, r.self.Id+"/session") {
		r.sessions.Children--
	}
	if reg := r.table.WithPID(msg.Who); reg != nil {
		if !reg.Draining {
			r.sessions.TakeOutOfUse(reg)
		}
		r.finishSession(&contract.SessionClosed{Of: reg, Leftovers: reg.Leftovers})
	}
	r.onOwnerTerminated(msg.Who)
}

// finishSession removes a session that is closed, and continues what waits for it.
func (r *registry) finishSession(msg *contract.SessionClosed) {
	reg, left, closed := table.Of(msg.Of), msg.Leftovers, msg.CleanedUp
	reg.EndLife()
	if len(left) > 0 {
		r.closings.Leftovers.Add(reg.Key, left)
	} else if reg.WasOpen {
		closed++
	}
	r.reports.Closed(reg, msg)
	r.keeper.Closed(reg)
	r.closer.CloseRecord(reg)
	for _, other := range r.sessions.Remove(reg) { // one that closes leftovers waits for its predecessor, too
		r.dialing.Advance(other)
	}
	r.closer.SessionClosed(reg, closed, left)
}
