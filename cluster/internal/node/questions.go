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
//	session ──▶ proxy of the handler ── ask ──▶ handler      the questions of sessions here: asking
//	session ◀────────── answer ────────────────┘             those of other members: asked
type questions struct {
	*base
	asked  map[uint64]*question   // of other members, to handlers here
	asking map[uint64]ownQuestion // of sessions here, to handlers of other members
}

func newQuestions(b *base) *questions {
	return &questions{base: b, asked: map[uint64]*question{}, asking: map[uint64]ownQuestion{}}
}

// question is a question of another member to a handler here.
type question struct {
	peer    *peer
	remote  uint64          // its number there
	origin  messages.Origin // as the handler knows it
	handler *actor.PID
	pid     *actor.PID
	timer   timer
}

// ownQuestion is a question of a session here to a handler of another member.
type ownQuestion struct {
	peer *peer
	id   string
	pid  *actor.PID // takes the answer
}

type (
	// answered brings the answer of a handler here.
	answered struct {
		late
		number  uint64
		message any
	}
	// questionDue says that the time of a question is over.
	questionDue struct {
		late
		number uint64
	}
)

// ask puts a question of a session here to a handler of another member.
func (q *questions) ask(p *peer, handler string, req messages.Request, session *actor.PID) {
	number := q.number()
	q.asking[number] = ownQuestion{p, req.GetOrigin().Question, session}
	q.encode(req, encoded{part: q, to: p, asks: number, with: envelope{Ref: handler}})
}

// withdraw forgets a question of a session here, and returns its number. ok is false if it is not asked any longer.
func (q *questions) withdraw(p *peer, id string) (number uint64, ok bool) {
	for number, own := range inOrder(q.asking) {
		if own.peer == p && own.id == id {
			delete(q.asking, number)
			return number, true
		}
	}
	return 0, false
}

// onEncoded sends a question, unless it was withdrawn, or an answer.
func (q *questions) onEncoded(msg encoded) {
	if msg.answers != 0 {
		if err := msg.send(msg.answers | isReply); err != nil {
			msg.to.answer(msg.answers, &messages.Refusal{Reason: "the answer cannot be sent: " + err.Error()})
		}
		return
	}
	own, asking := q.asking[msg.asks]
	if !asking {
		return
	}
	if err := msg.send(msg.asks); err != nil {
		delete(q.asking, msg.asks)
		q.mail.Send(own.pid, &messages.Refusal{Reason: "the question cannot be sent: " + err.Error()})
	}
}

// asks reports whether a reply of a member is the answer to a question.
func (q *questions) asks(p *peer, number uint64) bool {
	own, asking := q.asking[number]
	return asking && own.peer == p
}

// onAnswer gives the answer of a handler elsewhere to the session that has asked.
func (q *questions) onAnswer(number uint64, value any) {
	one := q.asking[number]
	delete(q.asking, number)
	answer, ok := value.(messages.Answer)
	if !ok {
		answer = &messages.Refusal{Reason: "the question or its answer is not understood"}
	}
	q.mail.Send(one.pid, answer)
}

// onAsk puts a question of another member to a handler here.
func (q *questions) onAsk(from *peer, remote uint64, ref string, req messages.Request) {
	if from.cancelled.take(remote) {
		return
	}
	handler := wire.PID(ref)
	if q.mail.Gone(handler) {
		from.answer(remote, &messages.Refusal{Reason: clusterapi.NoHandler})
		return
	}
	number := q.number()
	origin := req.GetOrigin()
	origin.Question = from.label() + "/" + origin.Question
	pid := q.openProcess("question", func(message any, _ *actor.PID) any { return &answered{number: number, message: message} }, func(message any) any {
		if _, ended := message.(*actor.Terminated); ended {
			return &answered{number: number}
		}
		return nil
	})
	one := &question{peer: from, remote: remote, origin: *origin, handler: handler, pid: pid}
	one.timer = q.after(time.Until(origin.Deadline)+time.Second, &questionDue{number: number})
	q.asked[number] = one
	q.mail.Watch(handler, one.pid)
	q.mail.Request(handler, req, one.pid)
}

// onAnswered sends the answer of a handler to the member that has asked.
func (q *questions) onAnswered(msg *answered) {
	q.end(msg.number, clusterapi.AnswerOf(msg.message))
}

// cancel ends a question that its handler has not answered, and tells the handler.
func (q *questions) cancel(number uint64, answer messages.Answer, reason string) {
	if one := q.asked[number]; one != nil {
		q.end(number, answer)
		q.mail.Send(one.handler, &messages.Withdrawn{Origin: one.origin, Reason: reason})
	}
}

// onWithdrawn ends a question of another member. One that is on its way is not put to its handler.
func (q *questions) onWithdrawn(from *peer, remote uint64, reason string) {
	for number, one := range inOrder(q.asked) {
		if one.peer == from && one.remote == remote {
			q.cancel(number, nil, reason)
			return
		}
	}
	from.cancelled.add(remote)
}

// end removes a question. answer may be nil, if nobody waits for it.
func (q *questions) end(number uint64, answer messages.Answer) {
	one := q.asked[number]
	if one == nil {
		return
	}
	one.timer.Stop()
	q.endProcess(one.pid)
	q.mail.Unwatch(one.handler, one.pid)
	delete(q.asked, number)
	if answer != nil {
		q.encode(answer, encoded{part: q, to: one.peer, answers: one.remote})
	}
}

// lose ends the questions from and to a member that is lost.
func (q *questions) lose(p *peer) {
	const reason = "the member has left the cluster"
	for number, one := range inOrder(q.asked) {
		if one.peer == p {
			q.cancel(number, nil, reason)
		}
	}
	for number, one := range inOrder(q.asking) {
		if one.peer == p {
			delete(q.asking, number)
			q.mail.Send(one.pid, &messages.Refusal{Reason: reason})
		}
	}
}
