package session

import (
	"context"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// errServerDown ends a dial whose server is known to be down. It is only for the session.
var errServerDown = &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Present, Detail: "the server of the key is down"}

// askForAddress asks the registry whether a dial may continue. It blocks until the answer
// comes or ctx ends.
func askForAddress(ctx context.Context, system *actor.ActorSystem, registry *mailbox.Mailbox, msg *contract.AddressFound) error {
	reply, err := contract.RequestFrom(ctx, system, registry, msg)
	if err != nil {
		return dial.AsError(err)
	}
	if allowed, ok := reply.(*contract.AddressAllowed); ok && allowed.Is {
		return nil
	}
	return errServerDown
}
