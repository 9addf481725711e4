package actors

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/actors/internal/mailbox"
)

// A session in doubt may open a second session beside its first, in its own slot: see
// [mcpbridge.DialRequest.Admit]. That takes a permit to dial, like any other session.
//
//	session ──controlWanted──▶ waits for a permit ──controlAllowed──▶ opens ──controlDone──▶
type (
	// controlWanted asks for such a permit. The reply is controlAllowed.
	controlWanted struct {
		of *registration

		// The rest belongs to the registry.
		server *server    // where it waits, or has its permit
		sender *actor.PID // that waits for the reply
		holds  bool       // it has a permit
		over   bool       // controlDone has come
	}
	// controlAllowed says whether the second session may be opened.
	controlAllowed struct{ is bool }
	// controlDone returns the permit, or withdraws the request.
	controlDone struct{ of *controlWanted }
)

// IgnoreDeadLetterLogging: the registry may have stopped.
func (*controlWanted) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging: whoever has asked may wait no more.
func (*controlAllowed) IgnoreDeadLetterLogging() {}

// IgnoreDeadLetterLogging: the registry may have stopped.
func (*controlDone) IgnoreDeadLetterLogging() {}

// errNotAdmitted is why no second session is opened.
var errNotAdmitted = errors.New("the session drains, or its server is down")

// admitControl asks the registry for a permit. It blocks until the answer has come or ctx has ended.
func admitControl(ctx context.Context, system *actor.ActorSystem, registry *mailbox.Mailbox, of *registration) (release func(), err error) {
	future := NewFuture(system, nil)
	defer future.Close()
	msg := &controlWanted{of: of}
	registry.PostUserMessage(&actor.MessageEnvelope{Message: msg, Sender: future.PID})
	release = func() { registry.PostUserMessage(&controlDone{msg}) }
	select {
	case reply := <-future.Reply:
		if allowed, ok := reply.(*controlAllowed); ok && allowed.is {
			return release, nil
		}
		return nil, errNotAdmitted
	case <-ctx.Done():
		release()
		return nil, ctx.Err()
	}
}
