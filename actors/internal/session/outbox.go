package session

import (
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/messages"
)

// outbox sends to the registry and to callers.
type outbox struct {
	registry *mailbox.Mailbox
	of       contract.Registration // of the session; belongs to the registry, not read here
	post     *relay.Post
}

// report sends a message to the registry.
func (o *outbox) report(msg any) { o.registry.PostUserMessage(msg) }

// reply tells the registry that a call has ended, and then answers it: a caller that sends
// one call after the other never has two (MaxInFlight).
func (o *outbox) reply(k *contract.Call, reply messages.Reply) {
	k.Run.Replied = true
	if f, failed := reply.(*messages.Failure); failed {
		k.Run.Answered.Code = f.Code
	}
	k.Run.Answered.Of, k.Run.Answered.Call = o.of, k
	o.report(&k.Run.Answered)
	o.post.Send(k.Caller, reply)
}

// replyFailed answers a call with a failure. The call may have run if it was started on a connection.
func (o *outbox) replyFailed(k *contract.Call, code messages.Code, detail string) {
	f := k.Failure(code, detail)
	f.MayHaveRun = f.MayHaveRun || k.Run.Conn != nil
	o.reply(k, f)
}
