package session

import (
	"cmp"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/connections"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// onStopped answers calls and closes connections that are left. After SessionClosed there
// are none, but user code can stop any actor before.
func (s *session) onStopped() {
	s.timer.Stop()
	s.subscribers.Close()
	s.dials.end(nil)
	s.calls.CancelRunning()
	for _, k := range s.calls.Owed() {
		s.out.replyFailed(k, messages.CodeClosed, "the session was stopped")
	}
	s.questions.Close()
	s.calls.Parked.Take()
	s.calls.Running.Take()
	for _, conn := range s.conns.All() {
		go contract.CloseWithin(s.limits.CloseTimeout, conn.Close) //nolint:errcheck // nobody is left who could be told
	}
	s.conns = connections.Connections{}
	s.mailbox.Close(func(message any) {
		switch msg := actor.UnwrapEnvelopeMessage(message).(type) {
		case *contract.Call:
			s.out.replyFailed(msg, messages.CodeClosed, "the session was stopped")
		case *dialed:
			if conn := cmp.Or(msg.conn, msg.left); conn != nil {
				go contract.CloseWithin(contract.UnresponsiveAfter, conn.Close) //nolint:errcheck // nobody is left who could be told
			}
		default:
			s.cfg.AnswerUnread(msg, actor.UnwrapEnvelopeSender(message))
		}
	})
}
