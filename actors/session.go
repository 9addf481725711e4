package actors

import (
	"context"
	"errors"
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
	*life
	state func(actor.Context) // the behavior

	// While waiting:
	eager bool // a connection is wanted even if no call waits

	// While connecting:
	early   *mcpbridge.Error // the connection ended before dialed came
	unheard []*heard         // notifications that came before dialed

	// While ready:
	pingAt  time.Time // when a keepalive ping is due, or zero
	pinging bool      // one was sent, and not answered yet
	listing bool      // the tools are being listed, for lost calls
	listed  bool      // that was done, or tried

	closing mcpbridge.Conn // that is being detached or closed; nil when none is
	last    gone           // the last message, while draining
	grace   time.Time      // when calls on old, or while draining, are cut
}

func newSession(l *life) *session {
	return &session{life: l}
}

// Receive handles the actor's own life, and leaves the rest to the state.
func (s *session) Receive(c actor.Context) {
	defer s.guard(c)
	if s.cfg.probe != nil {
		s.cfg.probe(c)
	}
	switch msg := c.Message().(type) {
	case *actor.Started:
		s.onStarted(c)
	case *actor.Terminated:
		s.held.leave(msg.Who)
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
	case *verdict:
		s.onVerdict(c, msg)
		s.proceed(c)
	case *answered:
		s.onAnswered(c, msg)
		s.release(c)
	case *detached:
		s.onDetached(msg)
	case *dialed:
		s.onStray(c, msg)
	case *woke:
		s.onWoke(c)
		s.release(c)
	case *unreachable:
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
	case *answered:
		s.onAnswered(c, msg)
		s.release(c)
	case *detached:
		s.onDetached(msg)
		s.proceed(c)
	case *dialed:
		s.onStray(c, msg)
		s.proceed(c)
	case *woke:
		s.onWoke(c)
		s.release(c)
	case *unreachable:
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
	case *answered:
		s.onAnswered(c, msg)
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
	case *unreachable:
		s.failParked(c, msg.cause, msg.retryAt)
		s.proceedIf(c, !s.wanted())
	case *cancelled:
		s.onCancelled(c, msg)
		s.proceedIf(c, !s.wanted())
	case *woke:
		s.onWoke(c)
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
	case *overtaken:
		s.state = s.abandoning
		s.abort()
	case *down:
		s.onEarlyDown(msg)
	case *heard:
		s.onEarlyHeard(msg)
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
	case *heard:
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
	case *answered:
		s.onAnswered(c, msg)
		s.startParked(c)
	case *listed:
		s.onListed(c, msg)
		s.startParked(c)
	case *woke:
		s.onWoke(c)
		s.ping(c)
	case *pulsed:
		s.onPulsed(msg)
	case *down:
		s.onDown(msg)
	default:
		s.always(c)
	}
}

// draining: calls in flight may finish, no call starts, connections are closed.
func (s *session) draining(c actor.Context) {
	switch msg := c.Message().(type) {
	case *call:
		s.reply(c, msg, msg.failure(messages.CodeClosed, "the session is closing"))
	case *answered:
		s.onAnswered(c, msg)
		s.finish(c)
	case *listed:
		s.listings--
		s.finish(c)
	case *pulsed:
		s.pinging = false
		s.finish(c)
	case *dialed:
		s.onDialedLate(c, msg)
	case *detached:
		s.onDetachedLate(c, msg)
	case *closed:
		s.onClosed(c, msg)
	case *woke:
		s.onWoke(c)
		s.finish(c)
	case *grant, *verdict:
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
	case *answered:
		s.onAnswered(c, msg)
	case *listed:
		s.listings--
	case *cancelled:
		s.onCancelled(c, msg)
	case *heard:
		s.onHeard(c, msg)
	case *drain:
		s.onDrain(c, msg)
	case *woke:
		s.onWoke(c)
	case *down, *pulsed, *detached, *overtaken, *unreachable, *verdict:
		// of a connection, a dial or an incarnation before
	default:
		s.log(s.cfg.Logger.Error()).Type("message", msg).Msg("session got a message it does not handle")
	}
}

// onStarted begins an incarnation. The connection of the one before is released first.
func (s *session) onStarted(c actor.Context) {
	if s.ending != nil {
		s.end(c)
		return
	}
	if s.conn != nil {
		s.old, s.conn = s.conn, nil
	}
	s.grace = s.failedAt.Add(s.cfg.DrainTimeout)
	switch {
	case s.drainOrder != nil: // there was a bug
		s.state = s.draining
		s.finish(c)
		return
	case s.cause != nil:
		s.state = s.deciding
		c.Send(s.registry, &failed{s.of, s.cause})
		s.release(c)
	default:
		s.proceed(c)
	}
	s.serveDeadlines(c)
}

// release lets the old connection go, once no call runs on it any more or their
// grace is over. Its session is left open on the server, to be resumed.
func (s *session) release(c actor.Context) {
	if s.old == nil || s.closing != nil {
		return
	}
	if s.running.count > 0 && time.Now().Before(s.grace) {
		s.wakeBy(c, s.grace)
		return
	}
	s.cut()
	conn, timeout := s.old, s.cfg.CloseTimeout
	s.closing = conn
	s.cfg.work(c, func() any {
		closing(timeout, conn.Detach) //nolint:errcheck // its session is resumed, or is closed later
		return &detached{conn}
	})
}

// onDetached notes that the old connection is released. Its session may be resumed.
func (s *session) onDetached(msg *detached) {
	if msg.conn != s.old {
		return
	}
	s.old, s.closing = nil, nil
	if (s.cause == nil || s.cause.Class != mcpbridge.Expired) && msg.conn.Resume() != nil {
		s.detached = msg.conn
	}
}

// onStray releases the connection that the incarnation before had dialed.
func (s *session) onStray(c actor.Context, msg *dialed) {
	s.abort, s.old, s.closing = nil, msg.conn, nil
	s.generation = max(s.generation, msg.generation)
	s.release(c)
}

// onVerdict answers those who are not to wait any longer. A session that was open is
// opened again when somebody waits for it, or something is held for it.
func (s *session) onVerdict(c actor.Context, msg *verdict) {
	s.refused = nil
	s.eager = s.served && !msg.gaveUp && !s.reopened && s.holds()
	if msg.gaveUp && msg.cause.Class == mcpbridge.Unauthorized {
		s.refused, s.refusedUntil = msg.cause.Cause, msg.retryAt
	}
	if msg.fail {
		s.failParked(c, msg.cause.Cause, msg.retryAt)
	}
}

// holds reports whether the session is for more than calls: for what the server says
// by itself to somebody who asked for it.
func (s *session) holds() bool { return len(s.held.subscriptions) > 0 || s.cfg.Subscriber != nil }

// failParked answers the calls that wait.
func (s *session) failParked(c actor.Context, cause *mcpbridge.Error, retryAt time.Time) {
	for _, k := range s.parked.take() {
		f := k.giveUp(cause)
		f.RetryAfter = max(f.RetryAfter, time.Until(retryAt))
		s.reply(c, k, f)
	}
}

// wanted reports whether a connection is wanted.
func (s *session) wanted() bool { return s.eager || s.parked.count > 0 }

// proceed enters the next state of waiting: once no old connection is left, it asks for a
// grant, or says that none is wanted.
func (s *session) proceed(c actor.Context) {
	switch {
	case s.old != nil || s.abort != nil:
		s.state = s.releasing
	case s.wanted():
		s.state = s.queued
		c.Send(s.registry, &wantDial{s.of})
	default:
		s.state = s.idle
		c.Send(s.registry, &vacant{s.of})
	}
}

// proceedIf proceeds if a condition holds.
func (s *session) proceedIf(c actor.Context, condition bool) {
	if condition {
		s.proceed(c)
	}
}

// onGrant dials. A connection that nobody is left to take is closed.
func (s *session) onGrant(c actor.Context) {
	s.state = s.connecting
	wanted, abort := context.WithCancel(context.Background())
	s.abort = abort

	root, self := c.ActorSystem().Root, c.Self()
	d := dialing{
		cfg: s.cfg, recall: s.recall(), fresh: s.fresh, req: s.dialRequest(c), setup: s.server.Setup, ops: s.held.ops(),
		generation: s.generation, goesOn: s.served, stateless: s.stateless,
	}
	go func() {
		msg := d.run(wanted)
		root.Send(self, msg)
		if msg.conn != nil && wanted.Err() != nil {
			closing(d.cfg.CloseTimeout, msg.conn.Close) //nolint:errcheck // the session tells, if it is there
		}
	}()
}

// dialRequest says what to dial, and whom to tell of what comes from there.
func (s *session) dialRequest(c actor.Context) mcpbridge.DialRequest {
	system, self, cfg, key := c.ActorSystem(), c.Self(), s.cfg, s.key
	req := mcpbridge.DialRequest{
		Key: key, Roots: s.held.roots,
		Down:  func(e *mcpbridge.Error) { system.Root.Send(self, &down{s, e}) },
		Heard: func(n messages.Notification, of messages.Operation) { system.Root.Send(self, &heard{n, of}) },
	}
	registry, of := s.registry, s.of
	req.Answered = func() { system.Root.Send(registry, &shaken{of}) }
	if s.detached != nil {
		req.Resume = s.detached.Resume()
	}
	if time.Now().Before(s.refusedUntil) {
		req.Refused = s.refused
	}
	if cfg.Handler != nil {
		req.Ask = func(ctx context.Context, r messages.Request) messages.Answer {
			*r.GetOrigin() = messages.Origin{Key: key, Deadline: time.Now().Add(cfg.HandlerTimeout)}
			return ask(ctx, system, cfg.Handler, r)
		}
	}
	return req
}

// onEarlyDown keeps the end of a connection whose dial has not come back yet.
func (s *session) onEarlyDown(msg *down) {
	if msg.from == s {
		s.early = msg.err
	}
}

// onEarlyHeard keeps a notification of a connection whose dial has not come back yet.
func (s *session) onEarlyHeard(msg *heard) {
	if len(s.unheard) < maxUnpublished {
		s.unheard = append(s.unheard, msg)
	}
}

// onDialed begins to serve, or fails.
func (s *session) onDialed(c actor.Context, msg *dialed) {
	s.abort = nil
	switch {
	case s.refusedAgain(msg):
		s.failParked(c, s.refused, s.refusedUntil)
		s.yield(c, nil)
		return
	case msg.err != nil:
		e := mcpbridge.AsDialError(msg.err)
		s.fail(&Fault{Class: e.Class, Dialing: true, Cause: e})
	}
	s.conn, s.detached, s.refused = msg.conn, nil, nil
	restarted, elapsed := s.served, msg.elapsed
	s.openedAt = time.Now()
	if restarted {
		elapsed = s.openedAt.Sub(s.lostAt)
		s.reopened = s.parked.count == 0
	}
	info := s.conn.Info()
	s.served, s.generation, s.stateless = true, msg.generation, info.Stateless
	c.Send(s.registry, &opened{s.of, s.generation, info, restarted, msg.expired, elapsed})
	for _, h := range s.unheard {
		s.onHeard(c, h)
	}
	s.unheard = nil
	s.state = s.ready
	if s.early != nil {
		s.broke(s.early)
	}
	s.keepAlive(c)
	s.startParked(c)
}

// onAbandoned ends an aborted dial.
func (s *session) onAbandoned(c actor.Context, msg *dialed) {
	s.abort = nil
	if s.refusedAgain(msg) {
		s.failParked(c, s.refused, s.refusedUntil)
	}
	s.yield(c, msg.conn)
}

// refusedAgain reports whether a dial was given up because the credentials are still those
// that were refused.
func (s *session) refusedAgain(msg *dialed) bool {
	return s.refused != nil && errors.Is(msg.err, s.refused)
}

// yield waits again, after a dial that says nothing about the server. A connection that
// was opened nevertheless is released.
func (s *session) yield(c actor.Context, conn mcpbridge.Conn) {
	s.early, s.unheard = nil, nil
	c.Send(s.registry, &yielded{s.of})
	if conn != nil {
		s.old, s.closing = conn, nil
		s.release(c)
	}
	s.proceed(c)
}

// onDown ends an incarnation whose connection ended by itself.
func (s *session) onDown(msg *down) {
	if msg.from == s {
		s.broke(msg.err)
	}
}

// broke hands the session to its supervisor.
func (s *session) broke(e *mcpbridge.Error) {
	class := mcpbridge.Lost
	if e.Session == mcpbridge.Gone {
		class = mcpbridge.Expired
	}
	s.fail(&Fault{Class: class, Cause: e})
}

// settledIn is how long a session has to be open before one that nobody calls is
// opened again more than once.
const settledIn = time.Minute

// fail ends the incarnation. It does not return.
func (s *session) fail(f *Fault) {
	f.Key, f.Generation = s.key, s.generation
	s.cause, s.failedAt = f, time.Now()
	if !f.Dialing {
		s.lostAt, f.Lived = s.failedAt, s.failedAt.Sub(s.openedAt)
		s.reopened = s.reopened && f.Lived < settledIn
	}
	fail(f)
}

// keepAlive sets when the connection is pinged next.
func (s *session) keepAlive(c actor.Context) {
	if s.server.KeepAlive > 0 {
		s.pingAt = time.Now().Add(s.server.KeepAlive)
		s.wakeBy(c, s.pingAt)
	}
}

// log adds the fields that all log lines of a session have.
func (s *session) log(e *zerolog.Event) *zerolog.Event {
	return e.Str("server", s.key.Server).Str("scope", s.key.Scope).Uint64("generation", s.generation)
}
