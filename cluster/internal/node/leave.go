package node

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/internal/wire"
)

// leaves says that a member has left. Clean: each command that the member ran was answered.
type leaves struct {
	Clean bool `json:"clean"`
}

func init() { wire.Register[leaves]("leaves") }

const (
	// leavePause is how long a member that leaves waits until it looks again whether the others have all messages.
	leavePause = 20 * time.Millisecond
	// flushTime is how long the last messages of a member have to be sent.
	flushTime = 200 * time.Millisecond
)

type (
	// leaveDue says that it is time to look whether the member can leave.
	leaveDue struct{ late }
	// flushDue says that flushTime is over.
	flushDue struct{ late }
	// endDue says that the witness does not answer.
	endDue struct{ late }
)

// onLeave leaves the cluster: the member asks for a view in which it owns nothing, hands its shards over, and waits for the
// calls that are here.
func (n *node) onLeave(c actor.Context) {
	n.leaving = c.Sender()
	switch {
	case n.ended:
		n.sayLeft()
	case !n.left:
		n.leftAt = time.Now().Add(n.closeTime())
		n.members.keeper.Leave()
		n.members.ask()
		n.onLeaveDue()
	}
}

// sayLeft answers who has the member leave.
func (n *node) sayLeft() {
	if n.leaving != nil {
		n.mail.Send(n.leaving, &Left{})
		n.leaving = nil
	}
}

// linksIdle reports whether the others have got all messages.
func (n *node) linksIdle() bool {
	for _, p := range n.members.peers {
		if p.alive() && !p.link.Idle() {
			return false
		}
	}
	return true
}

// onLeaveDue has [node.finishLeaving] called now and then: Receive calls it after each message.
func (n *node) onLeaveDue() {
	if n.leaving != nil && !n.left {
		n.after(leavePause, &leaveDue{})
	}
}

// finishLeaving ends the node when nothing is left to do.
func (n *node) finishLeaving() {
	if n.leaving == nil || n.left {
		return
	}
	if (n.members.inside && n.cfg.Lease.Held() || n.dropping) && time.Now().Before(n.leftAt) {
		self, _ := n.members.keeper.View().Member(n.members.id)
		if n.dropping || !self.Leaving || len(n.routing.exchanges)+len(n.serving.all) > 0 || n.shards.Releasing() || !n.linksIdle() {
			return
		}
	}
	n.left = true
	n.routing.leave()
	if !n.members.inside {
		n.endNode()
		return
	}
	for _, p := range inOrder(n.members.peers) {
		if p.alive() {
			p.post(0, &leaves{Clean: len(n.serving.all) == 0 && p.link.Idle()}) // a large reply may still be on its way
		}
	}
	n.after(flushTime, &flushDue{})
}

// onFlushDue has the member leave the view.
func (n *node) onFlushDue() {
	if n.ended {
		return
	}
	n.departing = true
	n.depart()
	n.after(n.cfg.LeaseTime, &endDue{})
}

// depart asks for a view without this member. The last member stays until its supervisor has stopped: all sessions are its
// own, also those that only the store knows.
func (n *node) depart() {
	if len(n.members.keeper.View().Members) == 1 && !n.supervisorStopped {
		n.members.keeper.Depart(false)
		n.remains = true
		n.shards.ownBits.setAll(true)
		n.sayLeft()
		return
	}
	n.remains = false
	n.shards.ownBits.setAll(false)
	n.members.keeper.Depart(true)
	n.members.ask()
}

// onEndDue ends a member that the witness does not answer. Its lease runs out, and the others remove it.
func (n *node) onEndDue() {
	if !n.ended && !n.remains {
		n.endNode()
	}
}

// endNode ends the node.
func (n *node) endNode() {
	n.left, n.ended = true, true
	n.routing.leave()
	n.endIncarnation()
	n.members.stop()
	n.sayLeft()
	n.cfg.Joined, n.cfg.Ask, n.cfg.Observe = func(error) {}, nil, nil // the node outlives the member
	n.quit()
}

// onSupervisorStopped lets the last member leave the view.
func (n *node) onSupervisorStopped() {
	n.supervisorStopped = true
	if n.departing && !n.ended {
		n.depart()
		n.after(n.cfg.LeaseTime, &endDue{})
	}
	n.quit()
}

// quit gives up the name of the node, if it has left and its supervisor, which gives calls back to it, has
// stopped. The actor is not stopped but forgotten: it still gets what is in its mailbox, and what timers and
// others that have its PID send.
func (n *node) quit() {
	if n.ended && n.supervisorStopped {
		n.stopped()
		n.cfg.System.ProcessRegistry.LocalPIDs.GetBucket(n.self.Id).Remove(n.self.Id)
	}
}

// onLeaves notes that a member has left.
func (n *node) onLeaves(p *peer, msg *leaves) {
	p.ended = true
	if msg.Clean {
		n.routing.notRun(p)
	}
	n.lost(p)
}
