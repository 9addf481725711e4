package actors

import (
	"runtime/debug"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// cancelPause is the time that notifications/cancelled gets to reach the server
// before its connection is closed.
const cancelPause = 50 * time.Millisecond

// onDrain takes nothing new from here on. It may come twice, the second time
// less patient.
func (s *session) onDrain(c actor.Context, msg *drain) {
	s.state, s.drainOrder = s.draining, msg
	parked := s.parked.take()
	switch {
	case !msg.evict:
		s.grace = time.Now().Add(s.cfg.DrainTimeout)
		for _, k := range parked {
			s.reply(c, k, k.failure(messages.CodeClosed, "the session was closed before the call was sent"))
		}
	default:
		for k := range s.running.all() {
			if at := k.deadline.Add(s.cfg.CloseTimeout); at.After(s.grace) {
				s.grace = at
			}
		}
		if len(parked) > 0 {
			c.Send(s.registry, &handback{s.of, parked})
		}
	}
	if s.abort != nil {
		s.abort()
	}
	s.finish(c)
}

// finish takes the next step towards the end.
func (s *session) finish(c actor.Context) {
	now := time.Now()
	switch {
	case s.abort != nil || s.closing != nil:
		return // dialed, detached or closed will come
	case s.waitsForCalls() && now.Before(s.grace):
		s.wakeBy(c, s.grace)
		return
	}
	for k := range s.running.all() {
		if !k.answered {
			s.abandon(c, k, messages.CodeClosed)
		}
	}
	for _, conn := range []mcpbridge.Conn{s.conn, s.old, s.detached} {
		if conn != nil {
			s.shut(c, conn)
			return
		}
	}
	if (s.running.count > 0 || s.listings > 0 || s.pinging) && now.Before(s.grace.Add(patience)) {
		s.wakeBy(c, s.grace.Add(patience)) // cut as they are, they return soon
		return
	}
	if s.stopTimer() {
		s.bid(c)
	}
}

// bid sends the last message.
func (s *session) bid(c actor.Context) {
	s.unwatch(c)
	s.state = s.closed
	s.last.of = s.of
	c.Send(s.registry, &s.last)
}

// waitsForCalls reports whether a caller waits for a call that is running.
func (s *session) waitsForCalls() bool {
	for k := range s.running.all() {
		if !k.answered {
			return true
		}
	}
	return false
}

// shut closes a connection for good.
func (s *session) shut(c actor.Context, conn mcpbridge.Conn) {
	s.closing = conn
	generation := s.generation
	pause, timeout, recall := s.running.count > 0, s.cfg.CloseTimeout, s.recall()
	leave := s.drainOrder.leave && conn.Resume() != nil
	s.cfg.work(c, func() any {
		if pause {
			<-time.After(cancelPause)
		}
		if leave {
			return &closed{conn, closing(timeout, conn.Detach)}
		}
		err := closing(timeout, conn.Close)
		if err == nil {
			recall.forget(generation)
		}
		return &closed{conn, err}
	})
}

// onDialedLate closes a connection whose dial was running when the drain came.
func (s *session) onDialedLate(c actor.Context, msg *dialed) {
	s.abort, s.conn = nil, msg.conn
	s.generation = max(s.generation, msg.generation) // which is remembered
	s.finish(c)
}

// onDetachedLate closes the session of a connection that was being released when the
// drain came.
func (s *session) onDetachedLate(c actor.Context, msg *detached) {
	if msg.conn == s.old {
		s.old, s.detached = nil, s.old
	}
	s.closing, s.grace = nil, time.Now()
	s.finish(c)
}

// onClosed closes the next connection.
func (s *session) onClosed(c actor.Context, msg *closed) {
	s.closing, s.grace = nil, time.Now()
	switch {
	case msg.conn == s.conn:
		s.conn = nil
	case msg.conn == s.old:
		s.old = nil
	case msg.conn == s.detached:
		s.detached = nil
	}
	if msg.err != nil {
		s.last.left = append(s.last.left, unended{conn: msg.conn, reason: msg.err.Error()})
	}
	s.finish(c)
}

// cut cancels what runs on the old connection: its grace is over.
func (s *session) cut() {
	for k := range s.running.all() {
		k.cancel()
	}
}

// onStopped is the last that is done. After gone there is nothing left to do;
// but anybody may stop any actor.
func (s *session) onStopped(c actor.Context) {
	s.stopTimer()
	if s.abort != nil {
		s.abort()
	}
	s.cut()
	for _, k := range s.owed() {
		if k.caller != nil {
			f := k.failure(messages.CodeClosed, "the session was stopped")
			f.MayHaveRun = f.MayHaveRun || k.conn != nil
			c.Send(k.caller, f)
		}
	}
	s.parked.take()
	s.running.take()
	for _, conn := range []mcpbridge.Conn{s.conn, s.old, s.detached} {
		if conn != nil {
			go closing(s.cfg.CloseTimeout, conn.Close) //nolint:errcheck // nobody is left who could be told
		}
	}
	s.conn, s.old, s.detached = nil, nil, nil
	s.after.begin(c)
}

// guard turns a bug into the end of the incarnation that loses nothing: the
// callers get their replies, and what the message brought is kept. A fault
// passes.
func (s *session) guard(c actor.Context) {
	reason := recover()
	if reason == nil {
		return
	}
	if _, ok := reason.(*Fault); ok {
		fail(reason)
	}
	s.log(s.cfg.Logger.Error()).Type("message", c.Message()).Interface("reason", reason).
		Bytes("stack", debug.Stack()).Msg("session panicked")
	s.salvage(c)
	switch c.Message().(type) {
	case *actor.Stopped:
		s.onStopped(c)
	case *actor.Restarting, *actor.Stopping:
		// a panic here would lose the restart, or the stop
	default:
		s.cause, s.failedAt = bug(s.key, reason), time.Now()
		s.lostAt = s.failedAt
		fail(reason)
	}
}

// salvage keeps what a message brought that was not handled to its end, and
// answers all callers.
func (s *session) salvage(c actor.Context) {
	switch msg := c.Message().(type) {
	case *call:
		if msg.in == nil && !msg.answered {
			s.parked.push(msg)
		}
	case *answered:
		s.forget(msg.call)
		if msg.call.in == nil && !msg.call.answered {
			s.parked.push(msg.call)
		}
	case *listed:
		s.listings--
	case *dialed:
		s.abort, s.old = nil, msg.conn
		s.generation = max(s.generation, msg.generation)
	case *drain:
		s.drainOrder = msg
	case *woke:
		s.timer = nil
	}
	if s.abort != nil {
		s.abort()
	}
	for _, k := range s.owed() {
		s.parked.remove(k)
		if k.in == &s.running {
			k.cancel()
		}
		f := k.failure(messages.CodeInternal, "a bug in the session, see the log")
		f.MayHaveRun = f.MayHaveRun || k.conn != nil
		s.reply(c, k, f)
	}
}
