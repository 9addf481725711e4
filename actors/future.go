package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// Future is a process that takes one reply, for code that is no actor.
// Proto.Actor's Future knows no context, and races the reply against its timeout.
type Future struct {
	// PID is what the reply is sent to.
	PID *actor.PID
	// Reply has the first message that is no notification. The rest are dropped.
	Reply <-chan any

	system *actor.ActorSystem
}

// NewFuture opens an inbox. Notifications go to notes; one that finds it full, or nil,
// is dropped. Close it.
func NewFuture(system *actor.ActorSystem, notes chan<- messages.Notification) *Future {
	slot := &futureProcess{make(chan any, 1), notes}
	pid, _ := system.ProcessRegistry.Add(slot, system.ProcessRegistry.NextId())
	return &Future{PID: pid, Reply: slot.reply, system: system}
}

// Close forgets the inbox: what is sent to it from now on is a dead letter.
func (b *Future) Close() { b.system.ProcessRegistry.Remove(b.PID) }

// futureProcess is the process of an inbox.
type futureProcess struct {
	reply chan any
	notes chan<- messages.Notification
}

// SendUserMessage takes a message.
func (s *futureProcess) SendUserMessage(_ *actor.PID, message any) {
	message = actor.UnwrapEnvelopeMessage(message)
	if note, ok := message.(messages.Notification); ok {
		select {
		case s.notes <- note:
		default:
		}
		return
	}
	select {
	case s.reply <- message:
	default:
	}
}

// SendSystemMessage does nothing.
func (*futureProcess) SendSystemMessage(*actor.PID, any) {}

// Stop does nothing.
func (*futureProcess) Stop(*actor.PID) {}
