package protocol

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/messages"
)

// Stopped is the detail of the failure for a command that was not read.
const Stopped = "the supervisor has stopped"

// Answer answers a message that was not read because the registry has stopped.
func Answer(post *relay.Post, supervisor string, msg any, sender *actor.PID) {
	switch msg := msg.(type) {
	case *ClientCall:
		Answer(post, supervisor, msg.Op, sender)
	case *ResentCall:
		if sender != nil {
			f := messages.NewFailure(msg.Op, messages.CodeClosed, Stopped)
			f.Supervisor, f.Attempt, f.MayHaveRun = supervisor, msg.Runs, f.MayHaveRun || msg.MayHaveRun
			post.Send(sender, f)
		}
	case *messages.Cancel, messages.Cancel:
	default:
		if sender != nil {
			cmd, _ := AsPointer[messages.Command](msg)
			f := messages.NewFailure(cmd, messages.CodeClosed, Stopped)
			f.Supervisor = supervisor
			post.Send(sender, f)
		}
	}
}

// AnswerOf returns what a handler has sent as an answer: it may have been sent as a value. nil is
// the end of the handler.
func AnswerOf(message any) messages.Answer {
	if answer, ok := AsPointer[messages.Answer](message); ok {
		return answer
	}
	switch message.(type) {
	case nil, *actor.DeadLetterResponse:
		return &messages.Refusal{Reason: NoHandler}
	}
	return &messages.Refusal{Reason: "the answer is of another kind"}
}

// NoHandler is why a question is refused that no handler can answer.
const NoHandler = "nobody is there who could answer"
