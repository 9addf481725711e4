package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// session is one incarnation of the actor that owns the connection of a key.
//
//	┌─ waiting ──────────────────────────────────────────┐
//	│ start ───────────────────────────▶ idle            │
//	│                                    │  ▲            │
//	│ deciding ──directive──▶ releasing ─┴▶ queued       │──grant──▶ connecting ──dialed──▶ ready
//	└────▲───────────────────────────────────────────────┘                │                   │
//	     └──────────────────────────── fault ◀────────────────────────────┴───────────────────┘
//
//	any of them ──drain──▶ draining ──▶ closed
type session struct {
	*durable
	state func(actor.Context) // the behavior

	// While waiting:
	reopen bool // a connection is wanted even if no call waits

	// While connecting:
	earlyEnd           *mcpbridge.Error        // the connection ended before dialed came
	earlyNotifications []*notificationReceived // notifications that came before dialed

	// While ready:
	pingAt       time.Time // when a keepalive ping is due, or zero
	pinging      bool      // one was sent, and not answered yet
	listingTools bool      // the tools are being listed, for lost calls
	listedTools  bool      // that was done, or tried

	closingConn mcpbridge.Conn // that is being detached or closed; nil when none is
	lastMessage sessionClosed  // the last message, while draining
	graceEnds   time.Time      // when calls on old, or while draining, are cut
}

func newSession(d *durable) *session {
	return &session{durable: d}
}

// Receive handles the actor's own life, and leaves the rest to the state.
func (s *session) Receive(c actor.Context) {
	defer s.recoverBug(c)
	if s.cfg.probe != nil {
		s.cfg.probe(c)
	}
	switch msg := c.Message().(type) {
	case *actor.Started:
		s.onStarted(c)
	case *actor.Terminated:
		s.settings.removeSubscriber(msg.Who)
	case *actor.Restarting, *actor.Stopping:
	case *actor.Stopped:
		s.onStopped(c)
	default:
		s.state(c)
	}
}

// deciding: the incarnation before has failed. The registry decides what to do, and the
// connection is released meanwhile.
func (s *session) deciding(c actor.Context) {
	switch msg := c.Message().(type) {
	case *call:
		s.park(c, msg)
	case *directive:
		s.onDirective(c, msg)
		s.proceed(c)
	case *callReturned:
		s.onCallReturned(c, msg)
		s.releaseOld(c)
	case *connDetached:
		s.onConnDetached(msg)
	case *dialed:
		s.onLateDial(c, msg)
	case *timerFired:
		s.onTimerFired(c)
		s.releaseOld(c)
	case *serverDown:
		s.failParked(c, msg.cause, msg.retryAt)
	case *grant:
		// the fault has revoked it
	default:
		s.always(c)
	}
}

// releasing: an old connection is being released, and nothing else is waited for.
func (s *session) releasing(c actor.Context) {
	switch msg := c.Message().(type) {
	case *call:
		s.park(c, msg)
	case *callReturned:
		s.onCallReturned(c, msg)
		s.releaseOld(c)
	case *connDetached:
		s.onConnDetached(msg)
		s.proceed(c)
	case *dialed:
		s.onLateDial(c, msg)
		s.proceed(c)
	case *timerFired:
		s.onTimerFired(c)
		s.releaseOld(c)
	case *serverDown:
		s.failParked(c, msg.cause, msg.retryAt)
	default:
		s.always(c)
	}
}

// idle: no connection is wanted.
func (s *session) idle(c actor.Context) {
	switch msg := c.Message().(type) {
	case *call:
		s.park(c, msg)
		s.proceed(c)
	case *callReturned:
		s.onCallReturned(c, msg)
		s.proceedIf(c, s.wanted())
	case *grant: // it was sent before the registry knew
		s.onGrant(c)
	default:
		s.always(c)
	}
}

// queued: the registry has been asked for a grant.
func (s *session) queued(c actor.Context) {
	switch msg := c.Message().(type) {
	case *call:
		s.park(c, msg)
	case *grant:
		s.onGrant(c)
	case *serverDown:
		s.failParked(c, msg.cause, msg.retryAt)
		s.proceedIf(c, !s.wanted())
	case *cancelCalls:
		s.onCancelled(c, msg)
		s.proceedIf(c, !s.wanted())
	case *timerFired:
		s.onTimerFired(c)
		s.proceedIf(c, !s.wanted())
	default:
		s.always(c)
	}
}

// connecting: a dial is running. Calls wait for it.
func (s *session) connecting(c actor.Context) {
	switch msg := c.Message().(type) {
	case *call:
		s.park(c, msg)
	case *dialed:
		s.onDialed(c, msg)
	case *abandonDial:
		s.state = s.abandoning
		s.abortDial()
	case *disconnected:
		s.onEarlyEnd(msg)
	case *notificationReceived:
		s.onEarlyNotification(msg)
	default:
		s.always(c)
	}
}

// abandoning: the dial was aborted in favor of another key's, and is about to end.
func (s *session) abandoning(c actor.Context) {
	switch msg := c.Message().(type) {
	case *call:
		s.park(c, msg)
	case *dialed:
		s.onAbandoned(c, msg)
	case *notificationReceived:
		// of a connection that is not used
	default:
		s.always(c)
	}
}

// ready: calls run.
func (s *session) ready(c actor.Context) {
	switch msg := c.Message().(type) {
	case *call:
		s.park(c, msg)
		s.startParked(c)
	case *callReturned:
		s.onCallReturned(c, msg)
		s.startParked(c)
	case *toolsListed:
		s.onToolsListed(c, msg)
		s.startParked(c)
	case *timerFired:
		s.onTimerFired(c)
		s.ping(c)
	case *pingReturned:
		s.onPingReturned(msg)
	case *disconnected:
		s.onDisconnected(msg)
	default:
		s.always(c)
	}
}

// draining: calls in flight may finish, no call starts, connections are closed.
func (s *session) draining(c actor.Context) {
	switch msg := c.Message().(type) {
	case *call:
		s.reply(c, msg, msg.failure(messages.CodeClosed, "the session is closing"))
	case *callReturned:
		s.onCallReturned(c, msg)
		s.continueDraining(c)
	case *toolsListed:
		s.listings--
		s.continueDraining(c)
	case *pingReturned:
		s.pinging = false
		s.continueDraining(c)
	case *dialed:
		s.onDialedDraining(c, msg)
	case *connDetached:
		s.onConnDetachedDraining(c, msg)
	case *connClosed:
		s.onConnClosed(c, msg)
	case *timerFired:
		s.onTimerFired(c)
		s.continueDraining(c)
	case *grant, *directive:
		// too late to matter
	default:
		s.always(c)
	}
}

// closed: the last message is sent, and the registry is about to stop the actor.
func (s *session) closed(actor.Context) {}

// always is what every state does alike.
func (s *session) always(c actor.Context) {
	switch msg := c.Message().(type) {
	case *callReturned:
		s.onCallReturned(c, msg)
	case *toolsListed:
		s.listings--
	case *cancelCalls:
		s.onCancelled(c, msg)
	case *notificationReceived:
		s.onNotification(c, msg)
	case *drain:
		s.onDrain(c, msg)
	case *timerFired:
		s.onTimerFired(c)
	case *disconnected, *pingReturned, *connDetached, *abandonDial, *serverDown, *directive:
		// of a connection, a dial or an incarnation before
	default:
		s.log(s.cfg.Logger.Error()).Type("message", msg).Msg("session got a message it does not handle")
	}
}

// onStarted begins an incarnation. The connection of the one before is released first.
func (s *session) onStarted(c actor.Context) {
	if s.cleanup != nil {
		s.startCleanup(c)
		return
	}
	if s.conn != nil {
		s.oldConn, s.conn = s.conn, nil
	}
	s.graceEnds = s.failedAt.Add(s.cfg.DrainTimeout)
	switch {
	case s.drainOrder != nil: // there was a bug
		s.state = s.draining
		s.continueDraining(c)
		return
	case s.cause != nil:
		s.state = s.deciding
		c.Send(s.registry, &faulted{s.registration, s.cause})
		s.releaseOld(c)
	default:
		s.proceed(c)
	}
	s.serveDeadlines(c)
}

// onDirective answers those who are not to wait any longer. A session that was open is
// opened again when somebody waits for it, or something is held for it.
func (s *session) onDirective(c actor.Context, msg *directive) {
	s.refused = nil
	s.reopen = s.wasOpen && !msg.gaveUp && !s.openedUnused && s.expectsNotifications()
	if msg.gaveUp && msg.cause.Class == mcpbridge.Unauthorized {
		s.refused, s.refusedUntil = msg.cause.Cause, msg.retryAt
	}
	if msg.failParked {
		s.failParked(c, msg.cause.Cause, msg.retryAt)
	}
}

// failParked answers the calls that wait.
func (s *session) failParked(c actor.Context, cause *mcpbridge.Error, retryAt time.Time) {
	for _, k := range s.parked.take() {
		f := k.unavailable(cause)
		f.RetryAfter = max(f.RetryAfter, time.Until(retryAt))
		s.reply(c, k, f)
	}
}

// wanted reports whether a connection is wanted.
func (s *session) wanted() bool { return s.reopen || s.parked.count > 0 }

// proceed enters the next state of waiting: once no old connection is left, it asks for a
// grant, or says that none is wanted.
func (s *session) proceed(c actor.Context) {
	switch {
	case s.oldConn != nil || s.abortDial != nil:
		s.state = s.releasing
	case s.wanted():
		s.state = s.queued
		c.Send(s.registry, &dialRequested{s.registration})
	default:
		s.state = s.idle
		c.Send(s.registry, &becameIdle{s.registration})
	}
}

// proceedIf proceeds if a condition holds.
func (s *session) proceedIf(c actor.Context, condition bool) {
	if condition {
		s.proceed(c)
	}
}

// log adds the fields that all log lines of a session have.
func (s *session) log(e *zerolog.Event) *zerolog.Event {
	return e.Str("server", s.key.Server).Str("scope", s.key.Scope).Uint64("generation", s.generation)
}
