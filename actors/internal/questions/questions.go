// Package questions has the questions of a server: which calls they may belong to, who answers them, and when they end.
package questions

import (
	"iter"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/ring"
	"github.com/mcpactor/mcpactor/internal/protocol"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/messages"
)

// Questions are the questions of one server that have no answer. They belong to its session.
type Questions struct {
	Post *relay.Post
	open ring.Ring[*Question]
}

// Take sends a question to the handler of its operation, or else to the first one of others. running are the calls that
// run. isReady is false before the first connection can take calls: a question is then of the set-up.
func (all *Questions) Take(msg *Asked, running iter.Seq[*contract.Call], isReady bool, others ...*actor.PID) {
	q := msg.question
	runs := q.attribute(running)
	if q.of != nil && len(q.calls) == 0 && (runs || isReady) {
		q.settle(&messages.Refusal{Reason: "its operation is over"})
		return
	}
	q.describe()
	if q.handler = q.chooseHandler(others); q.handler == nil || !all.Post.Watch(q.handler, q.pid) {
		q.settle(&messages.Refusal{Reason: protocol.NoHandler})
		return
	}
	all.open.Push(&q.node, q)
	all.Post.Request(q.handler, q.req, q.pid)
}

// IsAsked reports whether a question that may belong to a call is open.
func (all *Questions) IsAsked(k *contract.Call) bool {
	for q := range all.open.All() {
		if _, its := q.calls[k]; its {
			return true
		}
	}
	return false
}

// End withdraws the questions of a call that has ended. One that may belong to several
// calls is withdrawn when the last of them ends. One for roots, of no operation that is known, is
// not withdrawn: a server that has just started asks it for the whole session, beside the first call.
func (all *Questions) End(k *contract.Call, reason string) {
	for q := range all.open.All() {
		if _, its := q.calls[k]; !its {
			continue
		}
		delete(q.calls, k)
		if _, roots := q.req.(*messages.ListRoots); len(q.calls) == 0 && (q.of != nil || !roots) {
			all.withdraw(q, reason)
		}
	}
}

// EndFailed withdraws the questions of a call that has failed.
func (all *Questions) EndFailed(k *contract.Call, f *messages.Failure) { all.End(k, reasonOf(f)) }

// Over withdraws a question whose answer nobody waits for any more.
func (all *Questions) Over(msg *Over) { all.withdraw(msg.question, msg.reason) }

// Close withdraws the questions that are left when the session is closed.
func (all *Questions) Close() {
	for q := range all.open.All() {
		all.withdraw(q, "the session was closed")
	}
}

// withdraw forgets a question. If it was open, its handler is told, before the question stops watching
// it: a process that stands for a handler on another member may end once nobody watches it.
func (all *Questions) withdraw(q *Question, reason string) {
	if q.node.In == nil {
		return
	}
	all.open.Remove(&q.node)
	for k := range q.calls {
		k.Hear(time.Now())
	}
	if q.settle(&messages.Refusal{Reason: reason}) {
		all.Post.Send(q.handler, &messages.Withdrawn{Origin: *q.req.GetOrigin(), Reason: reason})
	}
	all.Post.Unwatch(q.handler, q.pid)
}
