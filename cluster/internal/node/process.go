package node

import (
	"slices"
	"sync"

	"github.com/asynkron/protoactor-go/actor"
)

// The processes here are PIDs without an actor: they pass what they get to the node, in the
// goroutine of the sender, so that the order is kept.

// inbox has the node handle what it gets.
type inbox struct {
	*base
	receive func(message any, sender *actor.PID)
	watch   func(message any) // or nil
}

// SendUserMessage passes a message on.
func (i *inbox) SendUserMessage(_ *actor.PID, message any) {
	_, inner, sender := actor.UnwrapEnvelope(message)
	i.do(func() { i.receive(inner, sender) })
}

// SendSystemMessage passes on who watches the process, or that an actor that it watches has ended.
func (i *inbox) SendSystemMessage(_ *actor.PID, message any) {
	if i.watch != nil {
		i.do(func() { i.watch(message) })
	}
}

// Stop does nothing.
func (*inbox) Stop(*actor.PID) {}

// Prompt says that messages are only queued. So the supervisor hands them over itself, which keeps their order, also
// of those for different processes: progress comes before the reply.
func (*inbox) Prompt() {}

// box is the sender of a command of another member. An operation without an owner belongs to it, and ends with the member.
type box struct {
	of      *served
	serving *serving

	mu       sync.Mutex
	watchers []*actor.PID  // the supervisor, and the node if the operation crosses again
	first    [1]*actor.PID // room for one of watchers
	ended    bool
}

// SendUserMessage passes the reply on.
func (b *box) SendUserMessage(_ *actor.PID, message any) {
	_, inner, _ := actor.UnwrapEnvelope(message)
	b.serving.do(func() { b.serving.onServed(b.of, inner) })
}

// SendSystemMessage notes who watches the box.
func (b *box) SendSystemMessage(self *actor.PID, message any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch m := message.(type) {
	case *actor.Watch:
		if b.ended {
			b.serving.mail.Terminated(m.Watcher, self, actor.TerminatedReason_Stopped)
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
		b.serving.mail.Terminated(watcher, self, actor.TerminatedReason_Stopped)
	}
}

// Stop does nothing.
func (*box) Stop(*actor.PID) {}

// Prompt is as that of an inbox.
func (*box) Prompt() {}
