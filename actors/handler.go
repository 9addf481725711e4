package actors

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// askHandler sends what a server asks to the handler, and waits for its answer. A handler
// that has stopped is noticed by the dead letter.
func askHandler(ctx context.Context, system *actor.ActorSystem, handler *actor.PID, req messages.Request) messages.Answer {
	box := NewFuture(system, nil)
	defer box.Close()
	ctx, cancel := context.WithDeadline(ctx, req.GetOrigin().Deadline)
	defer cancel()
	system.Root.RequestWithCustomSender(handler, req, box.PID)
	select {
	case msg := <-box.Reply:
		if answer, ok := asPointer[messages.Answer](msg); ok {
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
