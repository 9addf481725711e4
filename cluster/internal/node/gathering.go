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
	timer   timer
	replies *replies.Replies
}

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
	own := g.part(of, g.cfg.Name, past)
	g.askSupervisor(cmd, func(reply any) { g.onOwnPart(own, reply) })
	of.timer = g.after(g.limitOf(cmd), func() { g.onGatherDue(of) })
	for _, p := range others {
		if p.alive() {
			x := g.part(of, p.label(), past)
			g.routing.add(x)
			g.routing.give(x, p)
		}
	}
}

// part returns the part of a member.
func (g *gathering) part(of *gather, member string, past history) *exchange {
	x := &exchange{cmd: of.cmd, history: past}
	x.part = func(reply messages.Reply) { g.onPart(of, x, reply) }
	of.missing[x] = member
	return x
}

// onPart takes the reply of a member.
func (g *gathering) onPart(of *gather, x *exchange, reply messages.Reply) {
	member, missing := of.missing[x]
	if !missing {
		return
	}
	delete(of.missing, x)
	of.replies.Take(member, reply)
	if len(of.missing) == 0 {
		g.answer(of)
	}
}

// onOwnPart takes the reply of the own supervisor.
func (g *gathering) onOwnPart(x *exchange, message any) {
	reply, ok := message.(messages.Reply)
	if !ok {
		reply = g.failure(x.cmd, messages.CodeClosed, "the supervisor has stopped")
	}
	g.bindings.settle(x.cmd, reply)
	x.part(reply)
}

// onGatherDue answers with what has come.
func (g *gathering) onGatherDue(of *gather) {
	if len(of.missing) == 0 {
		return
	}
	for x, member := range of.missing {
		of.replies.Miss(member)
		g.routing.end(x)
	}
	clear(of.missing)
	g.answer(of)
}

// answer answers with the replies of all members.
func (g *gathering) answer(of *gather) {
	of.timer.Stop()
	g.mail.Send(of.caller, of.replies.Merge(func(code messages.Code, detail string) *messages.Failure { return g.failure(of.cmd, code, detail) }))
}
