package protocol

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// Future is a process that takes one reply, for code that is not an actor. It differs from
// Proto.Actor's Future in that the caller waits for a channel, and can also wait for a
// context.
type Future struct {
	// PID is the sender of the command, to which the reply goes.
	PID *actor.PID
	// Reply receives the first message that is not a notification. Later ones are dropped.
	Reply <-chan any

	system *actor.ActorSystem
}

// NewFuture returns a future, which must be closed. Notifications are sent to notes. They
// are dropped when notes is full or nil.
func NewFuture(system *actor.ActorSystem, notes chan<- messages.Notification) *Future {
	process := &futureProcess{make(chan any, 1), notes}
	pid, _ := system.ProcessRegistry.Add(process, system.ProcessRegistry.NextId())
	return &Future{PID: pid, Reply: process.reply, system: system}
}

// Close removes the process: a later message is a dead letter.
func (f *Future) Close() { f.system.ProcessRegistry.Remove(f.PID) }

// futureProcess is the process of a [Future].
type futureProcess struct {
	reply chan any
	notes chan<- messages.Notification
}

// SendUserMessage takes the reply, or a notification.
func (p *futureProcess) SendUserMessage(_ *actor.PID, message any) {
	message = actor.UnwrapEnvelopeMessage(message)
	if note, ok := message.(messages.Notification); ok {
		select {
		case p.notes <- note:
		default:
		}
		return
	}
	select {
	case p.reply <- message:
	default:
	}
}

// SendSystemMessage does nothing.
func (*futureProcess) SendSystemMessage(*actor.PID, any) {}

// Stop does nothing.
func (*futureProcess) Stop(*actor.PID) {}

// Prompt: a message is taken or dropped at once.
func (*futureProcess) Prompt() {}
