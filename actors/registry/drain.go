package registry

import (
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
	"github.com/mcpactor/mcpactor/messages"
)

// drain takes a session out of use and tells it to drain. A session that drains can be
// told once more, to close sooner.
func (r *registry) drain(reg *table.Registration, how contract.Drain) {
	if before := reg.DrainedBy; reg.Draining {
		switch {
		case !before.Evict && !before.Leave: // it is closed for good
			how.Leave = false
		case before.Leave && !before.Moves: // the registry stops
			how.Leave = true
		}
		if reg.Cleanup || !how.Changes(before) {
			return
		}
	} else {
		r.takeOutOfUse(reg)
	}
	reg.DrainedBy = how
	reg.TellLimits()
	reg.Send(&how)
}

// takeOutOfUse removes a session from its key: the next call of the key gets a new
// session.
func (r *registry) takeOutOfUse(reg *table.Registration) {
	reg.WantsDial = false
	r.gate.Drain(&reg.Session)
	r.lists.SetState(reg, messages.StateDraining)
	r.due.Remove(&reg.Backoff)
	r.table.TakeOutOfUse(reg)
}

// onSessionClosed stops the actor of a session that is closed.
func (r *registry) onSessionClosed(msg *contract.SessionClosed) {
	if reg := table.Of(msg.Of); r.table.WithPID(reg.PID) == reg {
		reg.Mailbox.PostSystemMessage(&actor.Stop{})
		if msg.CleanedUp > 0 {
			r.dialing.ServerUp(reg)
		}
		r.handSettingsOver(msg)
		r.finishSession(msg)
	}
}

// onTerminated removes a session whose actor was stopped by other code, or what belongs to an
// owner that has terminated.
func (r *registry) onTerminated(msg *actor.Terminated) {
	if strings.HasPrefix(msg.Who.Id, r.self.Id+"/session") {
		r.children--
		defer r.stopIfEmpty()
	}
	if reg := r.table.WithPID(msg.Who); reg != nil {
		if !reg.Draining {
			r.takeOutOfUse(reg)
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
	if r.cfg.Store != nil && !reg.WasOpen && !reg.Cleanup && !reg.DrainedBy.Leave {
		r.closeRecord(reg)
	}
	r.remove(reg)
	for _, closes := range r.closings.Closed(reg, closed, left) {
		r.continueClose(closes)
	}
	r.stopIfEmpty()
}

// closeRecord has the MCP session in the store closed of a key whose session was closed or restarted before it could
// resume it.
func (r *registry) closeRecord(reg *table.Registration) {
	if closes := r.closings.ForRecord(reg); closes != nil {
		r.cleanUp(closes, reg.Key)
		return
	}
	if reg.DrainedBy.Restart && !reg.DrainedBy.Moves && r.member.Owns(reg.Key) {
		r.startCleanup(reg.Key, nil, false)
	}
}
