package node

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/messages"
)

// leaves says that a member leaves the cluster, and hands over its shards; with Done, that it has done so.
// Clean: each command that the member ran was answered.
type leaves struct {
	Done  bool `json:"done"`
	Clean bool `json:"clean"`
}

func init() { wire.Register[leaves]("leaves") }

// onLeave leaves the cluster: the shards are handed over, and the calls that are here finish.
func (n *node) onLeave(c actor.Context) {
	if n.left {
		n.mail.Send(c.Sender(), &Left{})
		return
	}
	n.leaving = c.Sender()
	n.leftAt = time.Now().Add(n.closeTime())
	if n.net == nil {
		n.finishLeaving(c)
		return
	}
	n.setOwners()
	for _, p := range inOrder(n.peers) {
		n.post(p, 0, &leaves{})
	}
	n.routeWaiting(c)
	n.announceBy = time.Now().Add(announceTime)
	n.onLeaveDue(c)
}

// announceTime is how long the others have to take the announcement that a member leaves. One
// that misses it believes that the member has died.
const announceTime = 500 * time.Millisecond

// linksIdle reports whether the others have got all messages.
func (n *node) linksIdle() bool {
	for _, p := range n.peers {
		if p.alive() && !p.link.Idle() {
			return false
		}
	}
	return true
}

// leaveDue says that it is time to look whether the member can leave.
type leaveDue struct{}

// leavePause is how long a member that leaves waits until it looks again whether the others have all messages.
const leavePause = 20 * time.Millisecond

// onLeaveDue has [node.finishLeaving] called now and then: Receive calls it after each message.
func (n *node) onLeaveDue(c actor.Context) {
	if n.leaving != nil && !n.left {
		n.after(c, leavePause, &leaveDue{})
	}
}

// finishLeaving ends the node when nothing is left to do.
func (n *node) finishLeaving(c actor.Context) {
	if n.leaving == nil || n.left {
		return
	}
	if n.net != nil && !n.deregistered {
		if !n.linksIdle() && time.Now().Before(n.announceBy) {
			return
		}
		n.deregistered = true
		n.net.Leave()
		n.releaseMoved(c)
	}
	if time.Now().Before(n.leftAt) {
		busy := len(n.exchanges) > 0 || len(n.served) > 0
		for _, s := range n.shards {
			busy = busy || s.state == releasing
		}
		if n.net != nil && (busy || !n.linksIdle()) {
			return
		}
	}
	n.left = true
	n.finishAll(c)
	if n.net == nil {
		n.onFlushDue(c)
		return
	}
	for _, p := range inOrder(n.peers) {
		if p.alive() {
			n.post(p, 0, &leaves{Done: true, Clean: len(n.served) == 0 && p.link.Idle()}) // a large reply may still be on its way
		}
	}
	n.after(c, flushTime, &flushDue{})
}

// flushTime is how long the last messages of a member have to be sent.
const flushTime = 200 * time.Millisecond

// flushDue says that flushTime is over.
type flushDue struct{}

// finishAll answers all exchanges of a node that has left.
func (n *node) finishAll(c actor.Context) {
	for _, x := range inOrder(n.exchanges) {
		n.finish(c, x, n.failure(x.cmd, messages.CodeClosed, "this member has left the cluster"))
	}
}

// onFlushDue ends the incarnation.
func (n *node) onFlushDue(c actor.Context) {
	n.left = true
	n.finishAll(c)
	for _, p := range inOrder(n.peers) {
		n.losePeer(c, p)
	}
	clear(n.peers)
	for _, s := range n.shards {
		if s.state == activating {
			s.timer.Stop()
		}
	}
	clear(n.shards)
	if n.net != nil {
		n.net.Stop()
		n.net = nil
	}
	n.cfg.Lease.End()
	if n.ticker != nil {
		n.ticker.Stop()
	}
	if n.leaving != nil {
		n.mail.Send(n.leaving, &Left{})
		n.leaving = nil
	}
	n.cfg.Rejoin, n.cfg.Joined, n.cfg.Observe = nil, nil, nil // the node outlives the member
	n.quit(c)
}

// quit gives up the name of the node, if it has left and its supervisor, which gives calls back to it, has
// stopped. The actor is not stopped but forgotten: it still gets what is in its mailbox, and what timers and
// others that have its PID send.
func (n *node) quit(c actor.Context) {
	if n.left && n.net == nil && n.supervisorStopped {
		n.stopped()
		c.ActorSystem().ProcessRegistry.LocalPIDs.GetBucket(c.Self().Id).Remove(c.Self().Id)
	}
}

// onLeaves notes that a member leaves, or has left.
func (n *node) onLeaves(c actor.Context, p *peer, msg *leaves) {
	if msg.Done {
		p.ended = true
		for x := range p.exchanges {
			if msg.Clean { // it has not run what it has not answered
				x.sent = nil
			}
		}
		n.losePeer(c, p)
		return
	}
	p.leaving = true
	n.cfg.Logger.Info().Str("member", p.label()).Msg("member leaves the cluster")
	n.setOwners()
	n.routeWaiting(c)
}
