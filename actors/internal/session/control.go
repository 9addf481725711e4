package session

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
)

// errNotAdmitted is why no second session is opened.
var errNotAdmitted = errors.New("the server is down")

// admitControl asks the registry for a permit. It blocks until the answer has come or ctx has ended.
func admitControl(ctx context.Context, system *actor.ActorSystem, registry *mailbox.Mailbox, of contract.Registration) (opened, ended func(), err error) {
	msg := &contract.ControlWanted{Of: of}
	opened = func() { registry.PostUserMessage(&contract.ControlOpened{Of: msg}) }
	ended = func() { registry.PostUserMessage(&contract.ControlEnded{Of: msg}) }
	reply, err := contract.RequestFrom(ctx, system, registry, msg)
	if err != nil {
		ended()
		return nil, nil, err
	}
	if allowed, ok := reply.(*contract.ControlAllowed); ok && allowed.Is {
		return opened, ended, nil
	}
	return nil, nil, errNotAdmitted
}
