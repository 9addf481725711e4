package session

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/messages"
)

// onAsked sends a question to the handler of its operation, or else of the scope, or else of the
// supervisor.
func (s *session) onAsked(msg *asked) {
	q := msg.question
	running := s.attribute(q)
	if q.of != nil && len(q.calls) == 0 && (running || s.conn != nil) { // without conn, it is of a set-up
		q.settle(&messages.Refusal{Reason: "its operation is over"})
		return
	}
	origin := q.req.GetOrigin()
	if q.of != nil {
		origin.Operation = messages.RefTo(q.of)
	}
	var end time.Time // of the last call that it may belong to
	for k := range q.calls {
		end = latest(end, k.Deadline)
		if len(q.calls) == 1 {
			origin.Operation = messages.RefTo(k.Op)
		}
	}
	if len(q.calls) > 0 && end.Before(origin.Deadline) {
		origin.Deadline = end
	}
	if q.handler = s.handlerOf(q); q.handler == nil || !s.cfg.Post.Watch(q.handler, q.pid) {
		q.settle(&messages.Refusal{Reason: protocol.NoHandler})
		return
	}
	s.questions.Push(&q.node, q)
	s.cfg.Post.Request(q.handler, q.req, q.pid)
}

// attribute finds the running calls that a question may belong to: those of its operation if
// that is known, and else all without a reply. It reports whether there were any, with or without
// a reply.
func (s *session) attribute(q *question) (running bool) {
	q.calls = map[*contract.Call]struct{}{}
	for k := range s.running.All() {
		if q.of != nil && k.Op != q.of {
			continue
		}
		running = true
		if !k.Replied {
			q.calls[k] = struct{}{}
		}
	}
	return running
}

// handlerOf returns the handler of a question, or nil. If the operation of the question is not
// known, the handler of an operation counts only if all running operations have the same one.
func (s *session) handlerOf(q *question) *actor.PID {
	var common *actor.PID
	if q.of != nil {
		common = q.of.Head().Handler
	}
	for k := range q.calls {
		of := k.Op.Head().Handler
		if common != nil && !contract.SamePID(common, of) || of == nil {
			common = nil
			break
		}
		common = of
	}
	switch {
	case common != nil:
		return common
	case s.bind.Handler != nil:
		return s.bind.Handler
	}
	return s.cfg.Handler
}

// isAsked reports whether a question that may belong to a call is open.
func (s *session) isAsked(k *contract.Call) bool {
	for q := range s.questions.All() {
		if _, its := q.calls[k]; its {
			return true
		}
	}
	return false
}

// endQuestions withdraws the questions of a call that has ended. One that may belong to several
// calls is withdrawn when the last of them ends. One for roots, of no operation that is known, is
// not withdrawn: a server that has just started asks it for the whole session, beside the first call.
func (s *session) endQuestions(k *contract.Call, reason string) {
	for q := range s.questions.All() {
		if _, its := q.calls[k]; !its {
			continue
		}
		delete(q.calls, k)
		if _, roots := q.req.(*messages.ListRoots); len(q.calls) == 0 && (q.of != nil || !roots) {
			s.withdraw(q, reason)
		}
	}
}

// withdrawAll withdraws the questions that are left when the session is closed.
func (s *session) withdrawAll() {
	for q := range s.questions.All() {
		s.withdraw(q, "the session was closed")
	}
}

// withdraw forgets a question. If it was open, its handler is told, before the question stops watching
// it: a process that stands for a handler on another member may end once nobody watches it.
func (s *session) withdraw(q *question, reason string) {
	if q.node.In == nil {
		return
	}
	s.questions.Remove(&q.node)
	for k := range q.calls {
		k.Hear(time.Now())
	}
	if q.settle(&messages.Refusal{Reason: reason}) {
		s.cfg.Post.Send(q.handler, &messages.Withdrawn{Origin: *q.req.GetOrigin(), Reason: reason})
	}
	s.cfg.Post.Unwatch(q.handler, q.pid)
}
