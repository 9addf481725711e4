package bridge

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// owner is the caller that has dialed a session. A session that was opened as a control has none until a dial adopts it.
type owner struct {
	functions atomic.Pointer[functions]
	asked     atomic.Int32 // questions of the server that are not answered yet
}

// functions are those of the [dial.Request] of an owner. Each may be nil.
type functions struct {
	down  func(*mcpbridge.Error)
	admit func(context.Context) (opened, ended func(), err error)
	heard func(messages.Notification, messages.Operation)
	ask   func(context.Context, messages.Request, messages.Operation) messages.Answer
}

// permit is the permit for a control: see [dial.Request.Admit].
type permit struct{ opened, ended func() }

// freePermit is for a control that needs no permit.
var freePermit = permit{func() {}, func() {}}

// set sets the owner.
func (o *owner) set(req dial.Request) {
	o.functions.Store(&functions{req.Down, req.Admit, req.Heard, req.Ask})
}

// current returns the functions of the owner.
func (o *owner) current() functions {
	if f := o.functions.Load(); f != nil {
		return *f
	}
	return functions{}
}

// down tells the owner that the session has ended by itself.
func (o *owner) down(e *mcpbridge.Error) {
	if down := o.current().down; down != nil {
		down(e)
	}
}

// listens reports whether the owner wants notifications.
func (o *owner) listens() bool { return o.current().heard != nil }

// hear passes a notification to the owner.
func (o *owner) hear(n messages.Notification, of messages.Operation) {
	if heard := o.current().heard; heard != nil {
		heard(n, of)
	}
}

// ask passes a question to the owner, and waits for the answer.
func (o *owner) ask(ctx context.Context, req messages.Request, of messages.Operation) messages.Answer {
	ask := o.current().ask
	if ask == nil {
		return &messages.Refusal{Reason: "nobody is there who could answer"}
	}
	if o.asked.Add(1) > maxAsked {
		o.asked.Add(-1)
		return &messages.Refusal{Reason: fmt.Sprintf("%d requests are waiting for an answer already", maxAsked)}
	}
	defer o.asked.Add(-1)
	return ask(ctx, req, of)
}

// permit waits for a permit to open a control.
func (o *owner) permit(ctx context.Context) (permit, error) {
	admit := o.current().admit
	if admit == nil {
		return freePermit, nil
	}
	opened, ended, err := admit(ctx)
	return permit{opened, ended}, err
}
