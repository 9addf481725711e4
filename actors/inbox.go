package actors

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// Inbox is a process that takes one reply, for code that is no actor.
// Proto.Actor's Future knows no context, and races the reply against its timeout.
type Inbox struct {
	// PID is what the reply is sent to.
	PID *actor.PID
	// Reply has the first message that is no notification. The rest are dropped.
	Reply <-chan any

	system *actor.ActorSystem
}

// NewInbox opens an inbox. Notifications go to notes; one that finds it full, or nil,
// is dropped. Close it.
func NewInbox(system *actor.ActorSystem, notes chan<- messages.Notification) *Inbox {
	slot := &slot{make(chan any, 1), notes}
	pid, _ := system.ProcessRegistry.Add(slot, system.ProcessRegistry.NextId())
	return &Inbox{PID: pid, Reply: slot.reply, system: system}
}

// Close forgets the inbox: what is sent to it from now on is a dead letter.
func (b *Inbox) Close() { b.system.ProcessRegistry.Remove(b.PID) }

// slot is the process of an inbox.
type slot struct {
	reply chan any
	notes chan<- messages.Notification
}

// SendUserMessage takes a message.
func (s *slot) SendUserMessage(_ *actor.PID, message any) {
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
func (*slot) SendSystemMessage(*actor.PID, any) {}

// Stop does nothing.
func (*slot) Stop(*actor.PID) {}

// ask sends what a server asks to the handler, and waits for its answer. A handler
// that has stopped is noticed by the dead letter.
func ask(ctx context.Context, system *actor.ActorSystem, handler *actor.PID, req messages.Request) messages.Answer {
	box := NewInbox(system, nil)
	defer box.Close()
	ctx, cancel := context.WithDeadline(ctx, req.GetOrigin().Deadline)
	defer cancel()
	system.Root.RequestWithCustomSender(handler, req, box.PID)
	select {
	case msg := <-box.Reply:
		if answer, ok := pointed[messages.Answer](msg); ok {
			return answer
		}
		if _, dead := msg.(*actor.DeadLetterResponse); dead {
			return &messages.Refusal{Reason: "nobody is there who could answer"}
		}
		return &messages.Refusal{Reason: "the answer is of another kind"}
	case <-ctx.Done():
		return &messages.Refusal{Reason: "there was no answer in time"}
	}
}
