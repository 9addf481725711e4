package actors

import (
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

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
	if _, ok := reason.(*Fault); ok {
		fail(reason)
	}
	s.log(s.cfg.Logger.Error()).Type("message", c.Message()).Interface("reason", reason).
		Bytes("stack", debug.Stack()).Msg("session panicked")
	s.answerAfterBug(c)
	switch c.Message().(type) {
	case *actor.Stopped:
		s.onStopped(c)
	case *actor.Restarting, *actor.Stopping:
		// a panic here would lose the restart, or the stop
	default:
		s.cause, s.failedAt = bugFault(s.key, reason), time.Now()
		s.lostAt = s.failedAt
		fail(reason)
	}
}

// answerAfterBug keeps what the message brought, and answers all calls.
func (s *session) answerAfterBug(c actor.Context) {
	switch msg := c.Message().(type) {
	case *call:
		if !msg.queued() && !msg.replied {
			s.parked.push(msg)
		}
	case *callReturned:
		s.removeRunning(msg.call)
		if !msg.call.queued() && !msg.call.replied {
			s.parked.push(msg.call)
		}
	case *toolsListed, *heardAgain:
		s.requests--
	case *dialed:
		s.abortDial, s.oldConn = nil, msg.conn
		s.generation = max(s.generation, msg.generation)
	case *drain:
		s.drainOrder = msg
	case *timerFired:
		s.wakeTimer = nil
	}
	if s.abortDial != nil {
		s.abortDial(nil)
	}
	for _, k := range s.owed() {
		s.parked.remove(k)
		if s.running.has(k) {
			k.ctx.Cancel()
		}
		f := k.failure(messages.CodeInternal, "a bug in the session, see the log")
		f.MayHaveRun = f.MayHaveRun || k.conn != nil
		s.reply(c, k, f)
	}
}
