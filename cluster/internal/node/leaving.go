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

// leaving is how a member leaves the cluster.
//
//	inside ──onLeave──▶ leaving ──last call, or time over──▶ left ──flushed──▶ departing ──view──▶ ended
type leaving struct {
	*base
	members *membership
	shards  *ownShards
	routing *routing
	serving *serving
	end     func() // ends the node

	begun     bool         // it leaves, or has left
	who       []*actor.PID // who wait for Left
	leftAt    time.Time    // when leaving ends at the latest
	left      bool         // nothing is left to do but to leave the view
	departing bool         // it has told the others
	remains   bool         // it is the last member, and waits for its supervisor
	ended     bool         // it is no member, and will never be one

	supervisorStopped bool
}

// onLeave leaves the cluster: the member asks for a view in which it owns nothing, hands its shards over, and waits for the
// calls that are here.
func (l *leaving) onLeave(who *actor.PID) {
	l.who = append(l.who, who)
	switch {
	case l.ended:
		l.sayLeft()
	case !l.begun:
		l.begun = true
		l.leftAt = time.Now().Add(l.closeTime())
		l.members.leave()
		l.onLeaveDue()
	}
}

// leaves reports whether the member leaves the cluster.
func (l *leaving) leaves() bool { return l.begun }

// isLast reports whether the member leaves, and no other one is there that its calls could go to.
func (l *leaving) isLast() bool {
	at := l.cfg.Placement.at.Load()
	return l.begun && at != nil && at.owners.None()
}

// sayLeft answers all who wait.
func (l *leaving) sayLeft() {
	for _, who := range l.who {
		l.mail.Send(who, &Left{})
	}
	l.who = nil
}

// onLeaveDue has [leaving.finish] called now and then.
func (l *leaving) onLeaveDue() {
	if l.begun && !l.left {
		l.after(leavePause, l.onLeaveDue)
	}
}

// finish has the member leave the view when nothing is left to do. It is called after each message; dropping says that the
// supervisor drops the sessions of an incarnation that has ended.
func (l *leaving) finish(dropping bool) {
	if !l.begun || l.left {
		return
	}
	waits := dropping || l.members.keeper.Joins()
	if (l.members.inside() && l.cfg.Lease.Held() || waits) && time.Now().Before(l.leftAt) {
		self, _ := l.members.keeper.View().Member(l.members.id)
		if waits || !self.Leaving || len(l.routing.exchanges)+len(l.serving.all) > 0 || l.shards.Releasing() || !l.members.linksIdle() {
			return
		}
	}
	l.left = true
	l.routing.leave()
	if !l.members.inside() {
		l.end()
		return
	}
	for _, p := range inOrder(l.members.peers) {
		if p.alive() {
			p.post(0, envelope{}, &leaves{Clean: len(l.serving.all) == 0 && p.link.Idle()}) // a large reply may still be on its way
		}
	}
	l.after(flushTime, l.onFlushDue)
}

// onFlushDue has the member leave the view.
func (l *leaving) onFlushDue() {
	if l.ended {
		return
	}
	l.departing = true
	l.depart()
	patience := l.cfg.LeaseTime
	if time.Now().Before(l.leftAt) {
		patience *= 3 // others that leave too, and have ended, are removed after a lease
	}
	l.after(patience, l.onEndDue)
}

// depart asks for a view without this member. The last member stays until its supervisor has stopped: all sessions are its
// own, also those that only the store knows.
func (l *leaving) depart() {
	if len(l.members.keeper.View().Members) == 1 && !l.supervisorStopped {
		l.members.depart(false)
		l.remains = true
		l.shards.serveAll(true)
		l.sayLeft()
		return
	}
	l.remains = false
	l.shards.serveAll(false)
	l.members.depart(true)
}

// onEndDue ends a member that the witness does not answer. Its lease runs out, and the others remove it.
func (l *leaving) onEndDue() {
	if !l.ended && !l.remains {
		l.cfg.Lease.Abandon()
		l.end()
	}
}

// onSupervisorStopped lets the last member leave the view.
func (l *leaving) onSupervisorStopped() {
	l.supervisorStopped = true
	if l.departing && !l.ended {
		l.depart()
		l.after(l.cfg.LeaseTime, l.onEndDue)
	}
}
