package node

import (
	"iter"
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

// ownPart brings the own supervisor's reply to a command to all members.
type ownPart struct {
	late
	of      *gather
	message any
}

// gatherDue says that the time of a command to all members is over.
type gatherDue struct{ of *gather }

// gathering gives commands to all members, and answers them when all have replied.
type gathering struct {
	*base
	routing  *routing
	bindings *bindings
}

// begin gives a command to the own supervisor and to the members that are reached.
func (g *gathering) begin(cmd messages.Command, caller *actor.PID, members []messages.MemberSnapshot, others iter.Seq2[string, *peer]) {
	var past history
	if bind, binds := cmd.(*messages.Bind); binds {
		past.Binding = g.bindings.add(bind, time.Now())
	}
	of := &gather{cmd: cmd, caller: caller, missing: map[*exchange]string{}, replies: replies.New(cmd, members)}
	of.own = g.openProcess("gather", func(message any, _ *actor.PID) any { return &ownPart{of: of, message: message} }, nil)
	g.request(cmd, of.own)
	of.timer = g.after(g.limitOf(cmd), &gatherDue{of})
	for _, p := range others {
		if p.alive() {
			x := &exchange{cmd: cmd, history: past}
			x.part = func(reply messages.Reply) { g.onPart(of, x, reply) }
			of.missing[x] = p.label()
			g.routing.add(x)
			g.routing.give(x, p)
		}
	}
}

// onPart takes the reply of another member.
func (g *gathering) onPart(of *gather, x *exchange, reply messages.Reply) {
	member, missing := of.missing[x]
	if !missing {
		return
	}
	delete(of.missing, x)
	of.replies.Take(member, reply)
	g.answer(of)
}

// onOwnPart takes the reply of the own supervisor.
func (g *gathering) onOwnPart(of *gather, message any) {
	if of.own == nil {
		return
	}
	g.endProcess(of.own)
	of.own = nil
	reply, ok := message.(messages.Reply)
	if !ok {
		reply = g.failure(of.cmd, messages.CodeClosed, "the supervisor has stopped")
	}
	g.bindings.settle(of.cmd, reply)
	of.replies.Take(g.cfg.Name, reply)
	g.answer(of)
}

// onGatherDue answers with what has come.
func (g *gathering) onGatherDue(of *gather) {
	if of.own == nil && len(of.missing) == 0 {
		return
	}
	for x, member := range of.missing {
		of.replies.Miss(member)
		g.routing.end(x)
	}
	clear(of.missing)
	if of.own != nil {
		of.replies.Miss(g.cfg.Name)
		g.endProcess(of.own)
		of.own = nil
	}
	g.answer(of)
}

// answer answers when all parts are there.
func (g *gathering) answer(of *gather) {
	if of.own != nil || len(of.missing) > 0 {
		return
	}
	of.timer.Stop()
	g.reply(of.caller, of.replies.Merge(func(code messages.Code, detail string) *messages.Failure { return g.failure(of.cmd, code, detail) }))
}
