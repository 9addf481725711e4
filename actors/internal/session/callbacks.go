package session

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/questions"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// callbacks tell a session and the registry what happens to a connection. The bridge calls them, in its goroutines.
type callbacks struct {
	cfg         *contract.Config
	system      *actor.ActorSystem
	session     *mailbox.Mailbox
	registry    *mailbox.Mailbox
	of          contract.Registration // of the session
	key         messages.Key
	incarnation int           // that dials
	timeout     time.Duration // for the handler of a question
}

// request returns the request for a dial.
func (b callbacks) request() dial.Request {
	heard := make(contract.OnTheirWay, contract.MaxOnTheirWay)
	return dial.Request{
		Key: b.key, Store: b.cfg.Store,
		Down: func(e *mcpbridge.Error) { b.session.PostUserMessage(&disconnected{b.incarnation, e}) },
		Heard: func(n messages.Notification, of messages.Operation) {
			if !heard.Add() {
				b.cfg.Events.PutOf(heard, 0, n) // which drops and counts it
				return
			}
			b.session.PostUserMessage(&notificationReceived{n, of, heard})
		},
		Answered: func() { b.registry.PostUserMessage(&contract.HandshakeAnswered{Of: b.of}) },
		Admit:    b.admit,
		Ask: func(ctx context.Context, r messages.Request, op messages.Operation) messages.Answer {
			*r.GetOrigin() = messages.Origin{Key: b.key, Deadline: time.Now().Add(b.timeout)}
			return questions.Ask(ctx, b.system, b.session, r, op)
		},
	}
}

// errServerDown says that the registry does not allow a dial, or a second session, because the server is known to be down.
var errServerDown = &mcpbridge.Error{Class: mcpbridge.Unavailable, Server: mcpbridge.Present, Detail: "the server of the key is down"}

// resolved asks the registry whether a dial that has found its server may continue. It blocks.
func (b callbacks) resolved(ctx context.Context, srv *mcpbridge.Server) error {
	allowed, err := contract.IsAllowed(ctx, b.system, b.registry, &contract.AddressFound{Of: b.of, Address: srv.Endpoint()})
	switch {
	case err != nil:
		return dial.AsError(err)
	case !allowed:
		return errServerDown
	}
	return nil
}

// admit asks the registry for a permit to open a second session. It blocks.
func (b callbacks) admit(ctx context.Context) (opened, ended func(), err error) {
	msg := &contract.ControlWanted{Of: b.of}
	ended = func() { b.registry.PostUserMessage(&contract.ControlEnded{Of: msg}) }
	switch allowed, err := contract.IsAllowed(ctx, b.system, b.registry, msg); {
	case err != nil:
		ended()
		return nil, nil, err
	case !allowed:
		return nil, nil, errServerDown
	}
	return func() { b.registry.PostUserMessage(&contract.ControlOpened{Of: msg}) }, ended, nil
}
