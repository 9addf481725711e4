package questions

import (
	"context"
	"errors"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/actors/internal/ring"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// Question is a request of a server that waits for the answer of a handler. It is a process: the
// handler answers its PID. It is settled once, by the answer, by the end of the handler, or by the
// session that withdraws it.
type Question struct {
	req messages.Request
	of  messages.Operation // the operation that it belongs to, or nil if the connection cannot tell
	pid *actor.PID

	open   chan struct{}        // has an element until the question is settled
	answer chan messages.Answer // has an element when the question is settled

	// These belong to the session:
	handler *actor.PID                  // that has got it
	calls   map[*contract.Call]struct{} // the running calls that it may belong to
	node    ring.Node[*Question]
}

// From the goroutine of a question to its session.
type (
	// Asked brings a question.
	Asked struct{ question *Question }
	// Over says that nobody waits for the answer any more.
	Over struct {
		question *Question
		reason   string
	}
)

// Ask tells a session to ask its handler, and waits for the answer. It blocks.
func Ask(ctx context.Context, system *actor.ActorSystem, session *mailbox.Mailbox, req messages.Request, of messages.Operation) messages.Answer {
	q := &Question{req: req, of: of, open: make(chan struct{}, 1), answer: make(chan messages.Answer, 1)}
	q.open <- struct{}{}
	q.pid, _ = system.ProcessRegistry.Add(q, "question"+system.ProcessRegistry.NextId())
	defer system.ProcessRegistry.Remove(q.pid)
	ctx, cancel := context.WithDeadline(ctx, req.GetOrigin().Deadline)
	defer cancel()
	req.GetOrigin().Question = q.pid.Id
	session.PostUserMessage(&Asked{q})
	select {
	case answer := <-q.answer:
		session.PostUserMessage(&Over{q, ""})
		return answer
	case <-ctx.Done():
	}
	reason := "the connection of the session has ended, or the server does not wait any longer"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		reason = "there was no answer in time"
	}
	session.PostUserMessage(&Over{q, reason})
	return &messages.Refusal{Reason: reason}
}

// settle settles the question, and reports whether it was open.
func (q *Question) settle(answer messages.Answer) bool {
	select {
	case <-q.open:
		q.answer <- answer
		return true
	default:
		return false
	}
}

// SendUserMessage takes the answer of the handler. A handler that has stopped is recognized by
// the dead letter.
func (q *Question) SendUserMessage(_ *actor.PID, message any) {
	q.settle(protocol.AnswerOf(actor.UnwrapEnvelopeMessage(message)))
}

// SendSystemMessage takes the end of the handler.
func (q *Question) SendSystemMessage(_ *actor.PID, message any) {
	if _, ended := message.(*actor.Terminated); ended {
		q.settle(&messages.Refusal{Reason: protocol.NoHandler})
	}
}

// Stop does nothing.
func (*Question) Stop(*actor.PID) {}

// Prompt says that a message is handled at once.
func (*Question) Prompt() {}

// reasonOf returns why the questions of an operation that has failed are withdrawn.
func reasonOf(f *messages.Failure) string {
	reason := "the operation has failed"
	switch f.Code {
	case messages.CodeCancelled:
		reason = "the operation was cancelled"
	case messages.CodeDeadline:
		reason = "the deadline of the operation has passed"
	case messages.CodeClosed:
		reason = "the session was closed"
	}
	if f.Detail != "" {
		reason += ": " + f.Detail
	}
	return reason
}
