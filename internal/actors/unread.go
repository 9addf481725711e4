package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/messages"
)

// answerUnread has a mailbox answer the messages that its actor has not read. An actor calls
// it in Stopped.
func (cfg *Config) answerUnread(c actor.Context, unread *mailbox.Mailbox) {
	root := c.ActorSystem().Root
	unread.Close(func(message any) {
		Answer(root, cfg.Name, actor.UnwrapEnvelopeMessage(message), actor.UnwrapEnvelopeSender(message))
	})
}

// stoppedDetail is the detail of the failure for a command that was not read.
const stoppedDetail = "the supervisor has stopped"

// Answer answers a message that was not read, and closes a connection in it.
func Answer(c *actor.RootContext, supervisor string, msg any, sender *actor.PID) {
	switch msg := msg.(type) {
	case *call:
		if msg.caller != nil {
			c.Send(msg.caller, msg.failure(messages.CodeClosed, "the session was stopped"))
		}
	case *passedOn:
		Answer(c, supervisor, msg.call, nil)
	case *callsHandedBack:
		for _, k := range msg.calls {
			Answer(c, supervisor, k, nil)
		}
	case *callsTimedOut:
		for _, k := range msg.calls {
			Answer(c, supervisor, k, nil)
		}
	case *dialed:
		if msg.conn != nil {
			go closeWithin(unresponsiveAfter, msg.conn.Close) //nolint:errcheck // nobody is left who could be told
		}
	case *forgetStepDue:
		Answer(c, supervisor, msg.cmd, sender)
	case *ClientCall:
		Answer(c, supervisor, msg.Op, sender)
	case *ResentCall:
		if sender != nil {
			f := messages.NewFailure(msg.Op, messages.CodeClosed, stoppedDetail)
			f.Supervisor, f.Attempt, f.MayHaveRun = supervisor, msg.Runs, msg.MayHaveRun
			c.Send(sender, f)
		}
	case *messages.Cancel, messages.Cancel:
	default:
		if sender != nil {
			cmd, _ := asPointer[messages.Command](msg)
			f := messages.NewFailure(cmd, messages.CodeClosed, stoppedDetail)
			f.Supervisor = supervisor
			c.Send(sender, f)
		}
	}
}
