package actors

import (
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// drain takes a session out of use and tells it to drain. A session that drains can be
// told once more, to close sooner.
func (r *registry) drain(c actor.Context, reg *registration, order drain) {
	if reg.draining && (reg.cleanup || !order.changes(reg.order)) {
		return
	}
	if !reg.draining {
		r.takeOutOfUse(reg)
	}
	if reg.order.leave && !reg.order.moves { // the registry stops
		order.leave = true
	}
	reg.order = order
	r.tellLimits(c, reg)
	reg.send(&order)
}

// changes reports whether a drain asks for more than the one before: it leaves running calls less
// time, or leaves an MCP session open that would be closed to restart the session.
func (o drain) changes(before drain) bool {
	return o.urgency() > before.urgency() || o.leave && !before.leave && o.urgency() == before.urgency()
}

// urgency orders drains by the time that they leave running calls, the longest first.
func (o drain) urgency() int {
	switch {
	case o.now:
		return 3
	case !o.evict:
		return 2
	case o.restart:
		return 1
	}
	return 0
}

// takeOutOfUse removes a session from its key: the next call of the key gets a new
// session.
func (r *registry) takeOutOfUse(reg *registration) {
	reg.wantsDial, reg.unconnectedSlot = false, false
	reg.startDraining()
	r.setState(reg, messages.StateDraining)
	r.dequeue(reg)
	reg.stopBackoffTimer()
	e := r.entries[reg.key]
	e.current = nil
	e.draining = append(e.draining, reg)
}

// onSessionClosed stops the actor of a session that is closed.
func (r *registry) onSessionClosed(c actor.Context, msg *sessionClosed) {
	if r.registrations[msg.of.pid.Id] == msg.of {
		msg.of.mailbox.PostSystemMessage(&actor.Stop{})
		if msg.cleanedUp > 0 {
			r.serverUp(c, msg.of)
		}
		r.handSettingsOver(c, msg)
		r.finishSession(c, msg)
	}
}

// onTerminated removes a session whose actor was stopped by other code, or what belongs to an
// owner that has terminated.
func (r *registry) onTerminated(c actor.Context, msg *actor.Terminated) {
	if strings.HasPrefix(msg.Who.Id, c.Self().Id+"/session") {
		r.children--
		defer r.stopIfEmpty()
	}
	if reg := r.registrations[msg.Who.Id]; reg != nil {
		if !reg.draining {
			r.takeOutOfUse(reg)
		}
		r.finishSession(c, &sessionClosed{of: reg, leftovers: reg.leftovers})
	}
	r.onOwnerTerminated(c, msg.Who)
}

// finishSession removes a session that is closed, and continues what waits for it.
func (r *registry) finishSession(c actor.Context, msg *sessionClosed) {
	reg, left, closed := msg.of, msg.leftovers, msg.cleanedUp
	event := &messages.SessionClosed{Stamp: r.stamp(reg), Lifetime: msg.lifetime}
	if len(left) > 0 {
		event.Cause = left[0].reason
		r.leftovers.add(reg.key, left)
	}
	if reg.wasOpen {
		r.counters.Closed++
		r.publish(event)
		if len(left) == 0 {
			closed++
		}
	}
	r.remove(c, reg)
	for _, closing := range reg.closeCommands {
		if closing.replied {
			continue
		}
		delete(closing.waiting, reg)
		if reg.cleanup {
			closing.cleanups--
		}
		closing.reply.Sessions += closed
		for _, one := range left {
			closing.reply.Left = append(closing.reply.Left, messages.Left{Key: reg.key, Reason: one.reason})
		}
		r.continueClose(c, closing)
	}
	reg.closeCommands = nil
	r.stopIfEmpty()
}
