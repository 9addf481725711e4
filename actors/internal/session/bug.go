package session

import (
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// recoverBug recovers from a panic that is not a fault, and restarts the session: all calls
// are answered, and a connection or call in the current message is not lost. A fault is
// passed on.
func (s *session) recoverBug(c actor.Context) {
	reason := recover()
	if reason == nil {
		return
	}
	if _, ok := reason.(*actors.Fault); ok {
		contract.Fail(reason)
	}
	contract.About(s.cfg.Logger.Error(), s.key, s.last.generation).Type("message", c.Message()).Interface("reason", reason).
		Bytes("stack", debug.Stack()).Msg("session panicked")
	s.answerAfterBug(c.Message())
	switch c.Message().(type) {
	case *actor.Stopped:
		s.onStopped()
	case *actor.Restarting, *actor.Stopping:
		// a panic here would lose the restart, or the stop
	default:
		s.cause, s.failedAt = contract.BugFault(s.key, reason), time.Now()
		s.history.lostAt = s.failedAt
		contract.Fail(reason)
	}
}

// answerAfterBug keeps what the message brought, and answers all calls.
func (s *session) answerAfterBug(message any) {
	switch msg := message.(type) {
	case *contract.Call:
		if !msg.Queued() && !msg.Run.Replied {
			s.calls.Parked.Push(msg)
		}
	case *callReturned:
		s.calls.Running.Remove(msg.call)
		if !msg.call.Queued() && !msg.call.Run.Replied {
			s.calls.Parked.Push(msg.call)
		}
	case *toolsListed, *heardAgain, *taskCancelled:
		s.requests.returned()
	case *dialed:
		s.dials.returnedLate(msg, s.limits.CloseTimeout)
		s.conns.Unwanted(msg.conn)
	case *leftClosed:
		s.onLeftClosed(msg)
	case *contract.Drain:
		s.drainOrder = msg
	case *timerFired:
		s.timer.Fired()
	}
	s.dials.end(nil)
	for _, k := range s.calls.Owed() {
		s.calls.Parked.Remove(k)
		if s.calls.Running.Has(k) {
			k.Run.Ctx.Cancel()
		}
		s.out.replyFailed(k, messages.CodeInternal, "a bug in the session, see the log")
	}
}
