package session

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/questions"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Receive handles lifecycle messages, and gives the rest to the state.
func (s *session) Receive(c actor.Context) {
	defer s.recoverBug(c)
	if s.cfg.Probe != nil {
		s.cfg.Probe(c)
	}
	switch msg := c.Message().(type) {
	case *actor.Started:
		s.system, s.subscribers.Self = c.ActorSystem(), c.Self()
		s.onStarted()
	case *actor.Terminated:
		s.subscribers.RemoveSubscriber(msg.Who)
	case *actor.Restarting:
	case *actor.Stopping:
		s.dials.end(nil) // no message reaches the actor any more: the dial closes its connection itself
	case *actor.Stopped:
		s.onStopped()
	case *timerFired:
		s.timer.Fired()
		s.serveDeadlines()
		s.state(msg)
	default:
		s.state(msg)
	}
}

// releasing: the old connection is being released, and after a fault the directive of the registry is awaited.
func (s *session) releasing(message any) {
	switch msg := message.(type) {
	case *contract.Directive:
		if s.undirected {
			s.onDirective(msg)
			s.proceed()
		}
	case *callReturned:
		s.onCallReturned(msg)
		s.releaseOld()
	case *connDetached:
		s.conns.Detached(msg.conn)
		s.proceed()
	case *dialed:
		s.onLateDial(msg)
		s.proceed()
	case *timerFired:
		s.releaseOld()
	case *contract.ServerDown:
		s.failParked(msg.Cause, msg.RetryAt)
	case *contract.Grant:
		// Faulted, which the session has sent, revokes it
	default:
		s.always(msg)
	}
}

// idle: there is no connection, and none is wanted.
func (s *session) idle(message any) {
	switch msg := message.(type) {
	case *contract.Call:
		s.history.wantedAt = time.Now()
		s.park(msg)
		s.proceed()
	case *callReturned:
		s.onCallReturned(msg)
		if s.wanted() {
			s.proceed()
		}
	case *contract.Grant: // it crossed BecameIdle
		s.state = s.connecting
		s.onGrant(msg)
	default:
		s.always(msg)
	}
}

// queued: a connection is wanted, and the grant is awaited.
func (s *session) queued(message any) {
	switch msg := message.(type) {
	case *contract.Grant:
		s.state = s.connecting
		s.onGrant(msg)
	case *contract.ServerDown:
		s.failParked(msg.Cause, msg.RetryAt)
		s.idleIfUnwanted()
	case *contract.CancelCalls:
		s.onCancelled(msg)
		s.idleIfUnwanted()
	case *timerFired:
		s.idleIfUnwanted()
	default:
		s.always(msg)
	}
}

// connecting: the dial runs.
func (s *session) connecting(message any) {
	switch msg := message.(type) {
	case *dialed:
		if s.onDialed(msg) {
			s.state = s.ready
			s.startParked()
		} else {
			s.proceed()
		}
	case *contract.AbandonDial:
		s.state = s.abandoning
		s.dials.end(nil)
	case *disconnected:
		if msg.from == s.incarnation {
			s.early.end = msg.err
		}
	case *notificationReceived:
		s.early.keep(msg)
	default:
		s.always(msg)
	}
}

// abandoning: the dial was aborted, so that another session can dial, and its end is
// awaited.
func (s *session) abandoning(message any) {
	switch msg := message.(type) {
	case *dialed:
		s.onAbandoned(msg)
		s.proceed()
	case *notificationReceived:
		msg.heard.Remove() // of a connection that is about to be released
	default:
		s.always(msg)
	}
}

// ready: calls run.
func (s *session) ready(message any) {
	switch msg := message.(type) {
	case *contract.Call:
		s.park(msg)
		s.startParked()
	case *callReturned:
		s.onCallReturned(msg)
		s.startParked()
	case *toolsListed:
		s.onToolsListed(msg)
		s.startParked()
	case *heardAgain:
		s.onHeardAgain(msg)
		s.startParked()
	case *timerFired:
		s.keepAlive()
	case *recordSaved:
		s.saver.returned(msg, s.conns.Current)
		s.saver.schedule()
	case *disconnected:
		if msg.from == s.incarnation {
			s.connectionEnded(msg.err)
		}
	default:
		s.always(msg)
	}
}

// draining: running calls may finish, no call starts, and then the connections are closed.
func (s *session) draining(message any) {
	switch msg := message.(type) {
	case *contract.Call:
		s.out.reply(msg, msg.Failure(messages.CodeClosed, "the session is closing"))
		return
	case *callReturned:
		s.onCallReturned(msg)
	case *toolsListed, *heardAgain, *taskCancelled:
		s.requests.returned()
	case *pingReturned:
		s.keepalive.pinging = false
	case *recordSaved:
		s.saver.returned(msg, s.conns.Current)
	case *dialed:
		s.dials.returnedLate(msg, s.limits.CloseTimeout)
		s.conns.Current = msg.conn
	case *connDetached:
		s.onConnDetachedDraining(msg)
	case *connClosed:
		s.onConnClosed(msg)
	case *leftClosed:
		s.onLeftClosed(msg)
	case *timerFired:
		// the next step may be due
	case *contract.Grant, *contract.Directive:
		return // no dial follows
	default:
		s.always(msg)
		return
	}
	s.continueDraining()
}

// always handles the messages that most states handle in the same way.
func (s *session) always(msg any) {
	switch msg := msg.(type) {
	case *contract.Call:
		s.park(msg)
	case *callReturned:
		s.onCallReturned(msg)
	case *toolsListed:
		s.onToolsListed(msg)
	case *pingReturned:
		s.onPingReturned(msg)
	case *recordSaved:
		s.saver.returned(msg, s.conns.Current)
	case *heardAgain, *taskCancelled:
		s.requests.returned()
	case *leftClosed:
		s.onLeftClosed(msg)
	case *contract.TaskHeard:
		s.onTaskHeard(msg)
	case *contract.CancelCalls:
		s.onCancelled(msg)
	case *notificationReceived:
		s.onNotification(msg)
	case *contract.Drain:
		s.state = s.draining
		s.onDrain(msg)
	case *questions.Asked:
		s.questions.Take(msg, s.calls.Running.All(), s.conns.Current != nil, s.bind.Handler, s.cfg.Handler)
	case *questions.Over:
		s.questions.Over(msg)
	case *contract.ScopeBound:
		s.bind = msg.Bind
	case *contract.Forget:
		s.credentials.refused = nil
	case *contract.AdoptSettings:
		s.subscribers.Adopt(msg)
	case *contract.LimitsChanged:
		s.limits = msg.Limits
	case *timerFired:
		// the deadlines are served
	case *disconnected, *connDetached, *contract.AbandonDial, *contract.ServerDown, *contract.Directive:
		// of a connection, a dial or an incarnation that has ended
	default:
		contract.About(s.cfg.Logger.Error(), s.key, s.last.generation).Type("message", msg).Msg("session received a message that it does not handle")
	}
}

// onStarted begins an incarnation.
func (s *session) onStarted() {
	if s.conns.Restarted() {
		s.calls.InterruptTasks(func(*contract.Call) bool { return true })
	}
	s.graceEnds = s.failedAt.Add(s.limits.DrainTimeout)
	switch {
	case s.drainOrder != nil: // the restart is due to a bug
		s.state = s.draining
		s.continueDraining()
		return
	case s.cause != nil:
		s.undirected = true
		s.out.report(&contract.Faulted{Of: s.out.of, Fault: s.cause})
		s.releaseOld()
	}
	s.proceed()
	s.serveDeadlines()
}

// onDirective fails parked calls if the directive says so, and notes whether the session
// is opened again without any call.
func (s *session) onDirective(msg *contract.Directive) {
	s.undirected, s.credentials.refused = false, nil
	s.reopen = s.history.wasOpen && !msg.GaveUp && !s.history.openedUnused &&
		(len(s.subscribers.Subscriptions) > 0 || s.cfg.Subscriber != nil || s.bind.Subscriber != nil) // a caller wants its notifications
	if msg.GaveUp && msg.Cause.Class == mcpbridge.Unauthorized {
		s.credentials = credentials{msg.Cause.Cause, msg.RetryAt}
	}
	if msg.FailParked {
		s.failParked(msg.Cause.Cause, msg.RetryAt)
	}
}

// proceed enters releasing, queued or idle: the first one whose condition holds.
func (s *session) proceed() {
	switch {
	case s.undirected || s.conns.Old != nil || s.dials.isRunning():
		s.state = s.releasing
	case s.wanted():
		s.state = s.queued
		s.out.report(&contract.DialRequested{Of: s.out.of})
	default:
		s.state = s.idle
		s.out.report(&contract.BecameIdle{Of: s.out.of})
	}
}

// idleIfUnwanted leaves queued if no connection is wanted any longer.
func (s *session) idleIfUnwanted() {
	if !s.wanted() {
		s.proceed()
	}
}
