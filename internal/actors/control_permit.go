package actors

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/actors/internal/mailbox"
)

// A session in doubt may open a second session beside its first, in its own slot: see
// [mcpbridge.DialRequest.Admit]. That takes a permit to dial, like any other session. The slot is not returned
// before the second session has ended, or a dial has adopted it.
//
//	controlWanted ──▶ waits for a permit ──controlAllowed──▶ opens ──controlOpened──▶ open ──controlEnded──▶
type (
	// controlWanted asks for such a permit. The reply is controlAllowed.
	controlWanted struct {
		of *registration

		// The rest belongs to the registry.
		server  *server    // where it waits, or has its permit
		sender  *actor.PID // that waits for the reply
		allowed bool       // it uses the slot
		holds   bool       // it has a permit
		over    bool       // controlEnded has come
	}
	// controlAllowed says whether the second session may be opened.
	controlAllowed struct{ is bool }
	// controlOpened returns the permit.
	controlOpened struct{ of *controlWanted }
	// controlEnded says that the second session does not use the slot any more, or withdraws the request.
	controlEnded struct{ of *controlWanted }
)

// IgnoreDeadLetterLogging: the registry may have stopped.
func (*controlWanted) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging: whoever has asked may wait no more.
func (*controlAllowed) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging: the registry may have stopped.
func (*controlOpened) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging: the registry may have stopped.
func (*controlEnded) IgnoreDeadLetterLogging() {}

// errNotAdmitted is why no second session is opened.
var errNotAdmitted = errors.New("the server is down")

// admitControl asks the registry for a permit. It blocks until the answer has come or ctx has ended.
func admitControl(ctx context.Context, system *actor.ActorSystem, registry *mailbox.Mailbox, of *registration) (opened, ended func(), err error) {
	future := NewFuture(system, nil)
	defer future.Close()
	msg := &controlWanted{of: of}
	registry.PostUserMessage(&actor.MessageEnvelope{Message: msg, Sender: future.PID})
	opened = func() { registry.PostUserMessage(&controlOpened{msg}) }
	ended = func() { registry.PostUserMessage(&controlEnded{msg}) }
	select {
	case reply := <-future.Reply:
		if allowed, ok := reply.(*controlAllowed); ok && allowed.is {
			return opened, ended, nil
		}
		return nil, nil, errNotAdmitted
	case <-ctx.Done():
		ended()
		return nil, nil, ctx.Err()
	}
}
