package actors

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// errServerDown ends a dial whose server is known to be down. It is only for the session.
var errServerDown = &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Present, Detail: "the server of the key is down"}

// askForAddress asks the registry whether a dial may continue. It blocks until the answer
// comes or ctx ends.
func askForAddress(ctx context.Context, system *actor.ActorSystem, registry *mailbox.Mailbox, msg *addressFound) error {
	future := NewFuture(system, nil)
	defer future.Close()
	registry.PostUserMessage(&actor.MessageEnvelope{Message: msg, Sender: future.PID})
	select {
	case reply := <-future.Reply:
		if allowed, ok := reply.(*addressAllowed); ok && allowed.is {
			return nil
		}
		return errServerDown
	case <-ctx.Done():
		return mcpbridge.AsDialError(ctx.Err())
	}
}
