package actors

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// askHandler sends a request of a server to the handler and waits for the answer. A
// handler that has stopped is recognized by the dead letter. It blocks.
func askHandler(ctx context.Context, system *actor.ActorSystem, handler *actor.PID, req messages.Request) messages.Answer {
	future := NewFuture(system, nil)
	defer future.Close()
	ctx, cancel := context.WithDeadline(ctx, req.GetOrigin().Deadline)
	defer cancel()
	system.Root.RequestWithCustomSender(handler, req, future.PID)
	select {
	case msg := <-future.Reply:
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
