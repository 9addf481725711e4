package node

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
)

// The processes here are PIDs without an actor: they pass what they get to the node, in the
// goroutine of the sender, so that the order is kept.

// inbox passes what it gets on to the node.
type inbox struct {
	system  *actor.ActorSystem
	mail    *clusterapi.Post
	node    *actor.PID
	user    func(message any, sender *actor.PID) any
	systems func(message any) any // or nil
}

// register gives an inbox a PID.
func (b *inbox) register(prefix string) *actor.PID {
	pid, _ := b.system.ProcessRegistry.Add(b, prefix+b.system.ProcessRegistry.NextId())
	return pid
}

// SendUserMessage passes a message on.
func (b *inbox) SendUserMessage(_ *actor.PID, message any) {
	_, inner, sender := actor.UnwrapEnvelope(message)
	b.mail.Send(b.node, b.user(inner, sender))
}

// SendSystemMessage passes on who watches the process.
func (b *inbox) SendSystemMessage(_ *actor.PID, message any) {
	if b.systems == nil {
		return
	}
	if msg := b.systems(message); msg != nil {
		b.mail.Send(b.node, msg)
	}
}

// Stop does nothing.
func (*inbox) Stop(*actor.PID) {}

// Prompt says that messages are only queued. So the supervisor hands them over itself, which keeps their order, also
// of those for different processes: progress comes before the reply.
func (*inbox) Prompt() {}

// late marks messages that may come when the node has stopped.
type late struct{}

// IgnoreDeadLetterLogging keeps the message out of Proto.Actor's dead letter log.
func (late) IgnoreDeadLetterLogging() {}

type (
	// boxed brings the reply to a command of another member.
	boxed struct {
		late
		of      *served
		message any
	}
	// ownPart brings the own supervisor's reply to a command to all members.
	ownPart struct {
		late
		of      *gather
		message any
	}
)

// newBox returns the sender of a command of another member.
func (n *node) newBox(c actor.Context, s *served) *actor.PID {
	b := &inbox{system: c.ActorSystem(), mail: n.mail, node: c.Self()}
	b.user = func(message any, _ *actor.PID) any { return &boxed{of: s, message: message} }
	pid := b.register("remote")
	n.boxed[pid.Id] = s
	return pid
}

// newOwnBox returns the sender of the own supervisor's part of a command to all members.
func (n *node) newOwnBox(c actor.Context, g *gather) *actor.PID {
	b := &inbox{system: c.ActorSystem(), mail: n.mail, node: c.Self()}
	b.user = func(message any, _ *actor.PID) any { return &ownPart{of: g, message: message} }
	return b.register("gather")
}

// closeOwnBox removes the box of the own part.
func (n *node) closeOwnBox(c actor.Context, g *gather) {
	c.ActorSystem().ProcessRegistry.Remove(g.own)
	g.own = nil
}

// askSupervisor sends a message to the own supervisor. When it replies, the node gets what
// then returns.
func (n *node) askSupervisor(c actor.Context, msg any, then func() any) {
	system := c.ActorSystem()
	b := &inbox{system: system, mail: n.mail, node: c.Self()}
	var pid *actor.PID
	b.user = func(any, *actor.PID) any {
		system.ProcessRegistry.Remove(pid)
		return then()
	}
	pid = b.register("ask")
	c.RequestWithCustomSender(n.cfg.Supervisor, msg, pid)
}
