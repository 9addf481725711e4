package node

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/cluster/internal/wire"
	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// questions are the questions that sessions put to handlers of other members.
//
//	session ──▶ proxy of the handler ── question, Sender ──▶ handler
//	session ◀──────────── answer, for the Sender ──────────────┘
//
// The process of the session that waits for the answer knows what becomes of its question. The member of the handler knows
// those that the handler has not answered.
type questions struct {
	*base
	asked map[string]*question // of other members, to handlers here, by the id that the handler knows
}

func newQuestions(b *base) *questions { return &questions{base: b, asked: map[string]*question{}} }

// question is a question of another member to a handler here.
type question struct {
	peer    *peer
	asker   string          // the reference of the process that waits for the answer
	origin  messages.Origin // as the handler knows it
	handler *actor.PID
	pid     *actor.PID
	timer   timer
}

// ask puts a question of a session here to a handler of another member. The asker is the process that waits for the answer.
func (q *questions) ask(p *peer, handler string, req messages.Request, asker *actor.PID) {
	q.encode(req, encoded{part: q, to: p, asker: asker, with: envelope{Ref: handler, Sender: wire.Ref(asker)}})
}

// onEncoded sends a question, or an answer.
func (q *questions) onEncoded(msg encoded) {
	if msg.asker == nil {
		if err := msg.send(isReply); err != nil {
			msg.to.post(isReply, msg.with, &messages.Refusal{Reason: "the answer cannot be sent: " + err.Error()})
		}
		return
	}
	if err := msg.send(0); err != nil {
		q.mail.Send(msg.asker, &messages.Refusal{Reason: "the question cannot be sent: " + err.Error()})
	}
}

// onAnswer gives the answer of a handler elsewhere to the process that waits for it.
func (q *questions) onAnswer(asker string, value any) {
	answer, ok := value.(messages.Answer)
	if !ok {
		answer = &messages.Refusal{Reason: "the question or its answer is not understood"}
	}
	if pid := wire.PID(asker); q.isThere(pid) { // otherwise the question was withdrawn
		q.mail.Send(pid, answer)
	}
}

// idOf returns the id that a handler here knows of a question of another member.
func idOf(from *peer, question string) string { return from.ID + "/" + question }

// onAsk puts a question of another member to a handler here.
func (q *questions) onAsk(from *peer, with envelope, req messages.Request) {
	origin := req.GetOrigin()
	if origin.Question = idOf(from, origin.Question); from.withdrawn.take(origin.Question) {
		return
	}
	handler := wire.PID(with.Ref)
	if q.mail.Gone(handler) {
		from.post(isReply, envelope{Ref: with.Sender}, &messages.Refusal{Reason: clusterapi.NoHandler})
		return
	}
	one := &question{peer: from, asker: with.Sender, origin: *origin, handler: handler}
	one.pid = q.openProcess("question", func(message any, _ *actor.PID) { q.onAnswered(one, message) }, func(message any) {
		if _, ended := message.(*actor.Terminated); ended {
			q.onAnswered(one, nil)
		}
	})
	one.timer = q.after(time.Until(origin.Deadline)+time.Second, func() { q.onQuestionDue(one) })
	q.asked[origin.Question] = one
	q.mail.Watch(handler, one.pid)
	q.mail.Request(handler, req, one.pid)
}

// onAnswered sends the answer of a handler to the member that has asked.
func (q *questions) onAnswered(one *question, message any) { q.end(one, clusterapi.AnswerOf(message)) }

// onQuestionDue withdraws a question whose time is over.
func (q *questions) onQuestionDue(one *question) {
	const reason = "there was no answer in time"
	q.cancel(one, &messages.Refusal{Reason: reason}, reason)
}

// onWithdrawn ends a question of another member. One that is on its way is not put to its handler.
func (q *questions) onWithdrawn(from *peer, msg *messages.Withdrawn) {
	id := idOf(from, msg.Question)
	if one := q.asked[id]; one != nil {
		q.cancel(one, nil, msg.Reason)
		return
	}
	from.withdrawn.add(id)
}

// cancel ends a question that its handler has not answered, and tells the handler.
func (q *questions) cancel(one *question, answer messages.Answer, reason string) {
	if q.end(one, answer) {
		q.mail.Send(one.handler, &messages.Withdrawn{Origin: one.origin, Reason: reason})
	}
}

// end removes a question, and reports whether it was there. answer may be nil, if nobody waits for it.
func (q *questions) end(one *question, answer messages.Answer) (was bool) {
	if q.asked[one.origin.Question] != one {
		return false
	}
	one.timer.Stop()
	q.endProcess(one.pid)
	q.mail.Unwatch(one.handler, one.pid)
	delete(q.asked, one.origin.Question)
	if answer != nil {
		q.encode(answer, encoded{part: q, to: one.peer, with: envelope{Ref: one.asker}})
	}
	return true
}

// lose ends the questions of a member that is lost. Those to handlers there end with the proxies of these.
func (q *questions) lose(p *peer) {
	for _, one := range inOrder(q.asked) {
		if one.peer == p {
			q.cancel(one, nil, "the member has left the cluster")
		}
	}
}
