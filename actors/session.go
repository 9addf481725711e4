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
//	waiting ──grant──▶ connecting ──dialed──▶ ready ──drain──▶ draining ──▶ gone
//	   ▲                   │                    │
//	   └──── restart ◀─────┴────── fault ◀──────┘
//
// A drain may come in any state. Calls are accepted in all but draining, and
// their deadlines and cancellations are served in all.
type session struct {
	*life
	state func(actor.Context) // the behavior

	// While waiting:
	judged bool // the verdict on the last fault is known
	eager  bool // it dials even if nobody waits
	freed  bool // old is being let go
	asked  bool // a grant is on its way

	// While connecting:
	early     *mcpbridge.Error // the connection ended before dialed came
	unheard   []*heard         // what the server said before dialed came
	overtaken bool             // the dial was given up, for another key's

	// While ready:
	pingAt  time.Time // when a keepalive ping is due, or zero
	pinging bool      // one was sent, and not answered yet
	listing bool      // the tools are being listed, for lost calls
	listed  bool      // that was done, or tried

	// While draining:
	shutting bool // a connection is being closed
	last     gone // what to say at the end

	grace time.Time // when calls on old, or while draining, are cut
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

// waiting: there is no connection. The one before is let go, the verdict and
// then the grant are awaited.
func (s *session) waiting(c actor.Context) {
	switch msg := c.Message().(type) {
	case *call:
		s.park(c, msg)
		s.proceed(c)
	case *verdict:
		s.onVerdict(c, msg)
	case *released:
		s.onReleased(c, msg)
	case *unreachable:
		s.failParked(c, msg.cause, msg.retryAt)
		s.withdraw(c)
	case *grant:
		s.onGrant(c)
	case *dialed:
		s.onStray(c, msg)
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
		s.overtaken = true
		s.abort()
	case *down:
		if msg.from == s {
			s.early = msg.err
		}
	case *heard:
		if len(s.unheard) < maxUnpublished {
			s.unheard = append(s.unheard, msg)
		}
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
	case *down:
		s.onDown(msg)
	case *pulsed:
		s.onPulsed(msg)
	default:
		s.always(c)
	}
}

// drained: calls in flight may finish, nothing new starts, connections close.
func (s *session) drained(c actor.Context) {
	switch msg := c.Message().(type) {
	case *dialed:
		s.abort, s.conn = nil, msg.conn
		s.generation = max(s.generation, msg.generation) // which is remembered
		s.finish(c)
	case *released:
		s.onClosed(c, msg)
	case *call:
		s.reply(c, msg, msg.failure(messages.CodeClosed, "the session is closing"))
	case *pulsed:
		s.pinging = false
		s.finish(c)
	case *grant, *verdict:
		// too late to matter
	default:
		s.always(c)
	}
}

// over: the last message is sent, and the registry is about to stop us.
func (s *session) over(actor.Context) {}

// always is what every state does alike.
func (s *session) always(c actor.Context) {
	switch msg := c.Message().(type) {
	case *answered:
		s.onAnswered(c, msg)
		s.goOn(c)
	case *listed:
		s.onListed(c, msg)
		s.goOn(c)
	case *cancelled:
		s.onCancelled(c, msg)
	case *heard:
		s.onHeard(c, msg)
	case *drain:
		s.onDrain(c, msg)
	case *woke:
		s.timer = nil
		s.onWoke(c)
	case *down, *pulsed, *overtaken, *unreachable:
		// of a connection, or a wish, that was given up
	default:
		s.log(s.cfg.Logger.Error()).Type("message", msg).Msg("session got a message it does not handle")
	}
}

// onStarted begins an incarnation: the connection before is let go first.
func (s *session) onStarted(c actor.Context) {
	if s.ending != nil {
		s.end(c)
		return
	}
	s.state = s.waiting
	s.judged = s.cause == nil
	if s.conn != nil {
		s.old, s.conn = s.conn, nil
	}
	s.grace = s.failedAt.Add(s.cfg.DrainTimeout)
	if s.draining != nil { // there was a bug
		s.state = s.drained
		s.finish(c)
		return
	}
	if s.cause != nil {
		c.Send(s.registry, &failed{s.of, s.cause})
	}
	s.release(c)
	s.proceed(c)
	s.onWoke(c)
}

// release lets the old connection go, once no call runs on it any more or their
// grace is over. Its session is left open on the server, to be resumed.
func (s *session) release(c actor.Context) {
	if s.old == nil || s.freed {
		return
	}
	if s.running.count > 0 && time.Now().Before(s.grace) {
		s.wakeBy(c, s.grace)
		return
	}
	s.freed = true
	s.cut()
	conn, timeout := s.old, s.cfg.CloseTimeout
	s.cfg.work(c, func() any { return &released{conn, closing(timeout, conn.Detach)} })
}

// onReleased goes on when the old connection is gone.
func (s *session) onReleased(c actor.Context, msg *released) {
	if msg.conn != s.old {
		return
	}
	s.old, s.freed = nil, false
	if (s.cause == nil || s.cause.Class != mcpbridge.Expired) && msg.conn.Resume() != nil {
		s.detached = msg.conn
	}
	s.proceed(c)
}

// onStray takes the connection that an incarnation before had dialed.
func (s *session) onStray(c actor.Context, msg *dialed) {
	s.abort, s.old, s.freed = nil, msg.conn, false
	s.generation = max(s.generation, msg.generation)
	s.release(c)
	s.proceed(c)
}

// onVerdict answers those who are not to wait any longer. A session that was open is
// opened again when somebody waits for it, or something is held for it.
func (s *session) onVerdict(c actor.Context, msg *verdict) {
	s.judged, s.refused = true, nil
	s.eager = s.served && !msg.gaveUp && !s.reopened && s.holds()
	if msg.gaveUp && msg.cause.Class == mcpbridge.Unauthorized {
		s.refused, s.refusedUntil = msg.cause.Cause, msg.retryAt
	}
	if msg.fail {
		s.failParked(c, msg.cause.Cause, msg.retryAt)
	}
	s.proceed(c)
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

// proceed asks for a grant, or says that none is wanted.
func (s *session) proceed(c actor.Context) {
	want := s.eager || s.parked.count > 0
	switch {
	case s.old != nil || s.abort != nil || !s.judged || want && s.asked:
	case want:
		s.asked = true
		c.Send(s.registry, &wantDial{s.of})
	default:
		s.asked = false
		c.Send(s.registry, &vacant{s.of})
	}
}

// onGrant dials. A connection that nobody is left to take is closed.
func (s *session) onGrant(c actor.Context) {
	s.state, s.overtaken = s.connecting, false
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

// onDialed begins to serve, or fails.
func (s *session) onDialed(c actor.Context, msg *dialed) {
	s.abort = nil
	switch {
	case s.refused != nil && errors.Is(msg.err, s.refused): // there are no others yet
		s.failParked(c, s.refused, s.refusedUntil)
		s.yield(c, nil)
		return
	case s.overtaken:
		s.yield(c, msg.conn)
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

// yield goes back to waiting after a dial that has told nothing.
func (s *session) yield(c actor.Context, conn mcpbridge.Conn) {
	s.state, s.asked, s.early, s.unheard = s.waiting, false, nil, nil
	c.Send(s.registry, &yielded{s.of})
	if conn != nil { // it came just then
		s.old, s.freed = conn, false
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
