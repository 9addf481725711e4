package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/messages"
)

// answer answers a message that an actor has not read before it stopped.
func (cfg *Config) answer(message any) {
	Answer(cfg.Post, cfg.Name, actor.UnwrapEnvelopeMessage(message), actor.UnwrapEnvelopeSender(message))
}

// stoppedDetail is the detail of the failure for a command that was not read.
const stoppedDetail = "the supervisor has stopped"

// Answer answers a message that was not read, and closes a connection in it.
func Answer(post *relay.Post, supervisor string, msg any, sender *actor.PID) {
	switch msg := msg.(type) {
	case *call:
		post.Send(msg.caller, msg.failure(messages.CodeClosed, "the session was stopped"))
	case *passedOn:
		Answer(post, supervisor, msg.call, nil)
	case *callsHandedBack:
		for _, k := range msg.calls {
			Answer(post, supervisor, k, nil)
		}
	case *callsTimedOut:
		for _, k := range msg.calls {
			Answer(post, supervisor, k, nil)
		}
	case *dialed:
		if msg.conn != nil {
			go closeWithin(unresponsiveAfter, msg.conn.Close) //nolint:errcheck // nobody is left who could be told
		}
	case *walkDue:
		Answer(post, supervisor, msg.cmd, msg.caller)
	case *ClientCall:
		Answer(post, supervisor, msg.Op, sender)
	case *ResentCall:
		if sender != nil {
			f := messages.NewFailure(msg.Op, messages.CodeClosed, stoppedDetail)
			f.Supervisor, f.Attempt, f.MayHaveRun = supervisor, msg.Runs, msg.MayHaveRun
			post.Send(sender, f)
		}
	case *messages.Cancel, messages.Cancel:
	default:
		if sender != nil {
			cmd, _ := asPointer[messages.Command](msg)
			f := messages.NewFailure(cmd, messages.CodeClosed, stoppedDetail)
			f.Supervisor = supervisor
			post.Send(sender, f)
		}
	}
}
