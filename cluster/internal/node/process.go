package node

import (
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
)

// The processes here are PIDs without an actor: they pass what they get to the node, in the
// goroutine of the sender, so that the order is kept.

// inbox passes what it gets on to the node.
type inbox struct {
	mail    *clusterapi.Post
	node    *actor.PID
	user    func(message any, sender *actor.PID) any
	systems func(message any) any // or nil
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

// boxed brings the reply to a command of another member.
type boxed struct {
	late
	of      *served
	message any
}

// box is the sender of a command of another member. An operation without an owner belongs to it, and ends with the member.
type box struct {
	of   *served
	mail *clusterapi.Post
	node *actor.PID

	mu       sync.Mutex
	watchers []*actor.PID  // the supervisor, and the node if the operation crosses again
	first    [1]*actor.PID // room for one of watchers
	ended    bool
}

// SendUserMessage passes the reply on.
func (b *box) SendUserMessage(_ *actor.PID, message any) {
	_, inner, _ := actor.UnwrapEnvelope(message)
	b.mail.Send(b.node, &boxed{of: b.of, message: inner})
}

// SendSystemMessage notes who watches the box.
func (b *box) SendSystemMessage(self *actor.PID, message any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch m := message.(type) {
	case *actor.Watch:
		if b.ended {
			b.mail.Terminated(m.Watcher, self, actor.TerminatedReason_Stopped)
			return
		}
		b.watchers = append(b.watchers, m.Watcher)
	case *actor.Unwatch:
		b.watchers = slices.DeleteFunc(b.watchers, func(pid *actor.PID) bool { return pid.Equal(m.Watcher) })
	}
}

// isWatchedBy reports whether an actor watches the box.
func (b *box) isWatchedBy(who *actor.PID) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.ContainsFunc(b.watchers, who.Equal)
}

// end tells who watches the box that its member is lost.
func (b *box) end(self *actor.PID) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	for _, watcher := range b.watchers {
		b.mail.Terminated(watcher, self, actor.TerminatedReason_Stopped)
	}
}

// Stop does nothing.
func (*box) Stop(*actor.PID) {}

// Prompt is as that of an inbox.
func (*box) Prompt() {}
