package node

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/internal/replies"
	"github.com/mcpactor/mcpactor/messages"
)

// gather is a command to all members, until all have answered, or their time is over.
type gather struct {
	cmd     messages.Command
	caller  *actor.PID
	missing map[*exchange]string // parts without a reply, with the name of the member
	own     *actor.PID           // takes the own supervisor's reply, or nil once it has replied
	timer   timer
	replies *replies.Replies
}

// gatherDue says that the time of a command to all members is over.
type gatherDue struct{ of *gather }

// gather gives a command to all members, if this member may do so.
func (n *node) gather(c actor.Context, cmd messages.Command, limit time.Duration) {
	_, inspects := cmd.(*messages.Inspect)
	if why := n.whyFenced(); why != "" && !inspects {
		n.reply(c.Sender(), n.failure(cmd, messages.CodeUnavailable, why))
		return
	}
	var past history
	if bind, binds := cmd.(*messages.Bind); binds {
		past.Binding = n.bindings.add(bind, time.Now())
	}
	g := &gather{cmd: cmd, caller: c.Sender(), missing: map[*exchange]string{}, replies: replies.New(cmd, n.snapshot())}
	g.own = n.openProcess("gather", func(message any, _ *actor.PID) any { return &ownPart{of: g, message: message} }, nil)
	n.request(cmd, g.own)
	g.timer = n.after(limit, &gatherDue{g})
	for _, p := range inOrder(n.peers) {
		if p.alive() {
			x := &exchange{cmd: cmd, history: past}
			x.part = func(reply messages.Reply) { n.onPart(g, x, reply) }
			g.missing[x] = p.label()
			n.routing.add(x)
			n.routing.give(x, p)
		}
	}
}

// onPart takes the reply of another member.
func (n *node) onPart(g *gather, x *exchange, reply messages.Reply) {
	member, missing := g.missing[x]
	if !missing {
		return
	}
	delete(g.missing, x)
	g.replies.Take(member, reply)
	n.answerGather(g)
}

// onOwnPart takes the reply of the own supervisor.
func (n *node) onOwnPart(g *gather, message any) {
	if g.own == nil {
		return
	}
	n.endProcess(g.own)
	g.own = nil
	reply, ok := message.(messages.Reply)
	if !ok {
		reply = n.failure(g.cmd, messages.CodeClosed, "the supervisor has stopped")
	}
	n.bindings.settle(g.cmd, reply)
	g.replies.Take(n.cfg.Name, reply)
	n.answerGather(g)
}

// onGatherDue answers with what has come.
func (n *node) onGatherDue(g *gather) {
	if g.own == nil && len(g.missing) == 0 {
		return
	}
	for x, member := range g.missing {
		g.replies.Miss(member)
		n.routing.end(x)
	}
	clear(g.missing)
	if g.own != nil {
		g.replies.Miss(n.cfg.Name)
		n.endProcess(g.own)
		g.own = nil
	}
	n.answerGather(g)
}

// answerGather answers when all parts are there.
func (n *node) answerGather(g *gather) {
	if g.own != nil || len(g.missing) > 0 {
		return
	}
	g.timer.Stop()
	n.reply(g.caller, g.replies.Merge(func(code messages.Code, detail string) *messages.Failure { return n.failure(g.cmd, code, detail) }))
}
