package actors

import (
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
		s.graceEnds = time.Now().Add(s.cfg.DrainTimeout)
		for _, k := range parked {
			s.reply(c, k, k.failure(messages.CodeClosed, "the session was closed before the call was sent"))
		}
	default:
		for k := range s.running.all() {
			if at := k.deadline.Add(s.cfg.CloseTimeout); at.After(s.graceEnds) {
				s.graceEnds = at
			}
		}
		if len(parked) > 0 {
			c.Send(s.registry, &handback{s.registration, parked})
		}
	}
	if s.abortDial != nil {
		s.abortDial()
	}
	s.continueDraining(c)
}

// continueDraining takes the next step towards the end.
func (s *session) continueDraining(c actor.Context) {
	now := time.Now()
	switch {
	case s.abortDial != nil || s.closingConn != nil:
		return // dialed, detached or closed will come
	case s.waitsForCalls() && now.Before(s.graceEnds):
		s.wakeBy(c, s.graceEnds)
		return
	}
	for k := range s.running.all() {
		if !k.replied {
			s.cutOff(c, k, messages.CodeClosed)
		}
	}
	for _, conn := range []mcpbridge.Conn{s.conn, s.oldConn, s.resumable} {
		if conn != nil {
			s.closeConn(c, conn)
			return
		}
	}
	if (s.running.count > 0 || s.listings > 0 || s.pinging) && now.Before(s.graceEnds.Add(unresponsiveAfter)) {
		s.wakeBy(c, s.graceEnds.Add(unresponsiveAfter)) // cut as they are, they return soon
		return
	}
	if s.stopTimer() {
		s.sendClosed(c)
	}
}

// sendClosed sends the last message.
func (s *session) sendClosed(c actor.Context) {
	s.unwatchSubscribers(c)
	s.state = s.closed
	s.lastMessage.of = s.registration
	c.Send(s.registry, &s.lastMessage)
}

// waitsForCalls reports whether a caller waits for a call that is running.
func (s *session) waitsForCalls() bool {
	for k := range s.running.all() {
		if !k.replied {
			return true
		}
	}
	return false
}

// closeConn closes a connection for good.
func (s *session) closeConn(c actor.Context, conn mcpbridge.Conn) {
	s.closingConn = conn
	generation := s.generation
	pause, timeout, recall := s.running.count > 0, s.cfg.CloseTimeout, s.store()
	leave := s.drainOrder.leave && conn.Resume() != nil
	s.cfg.async(c, func() any {
		if pause {
			<-time.After(cancelPause)
		}
		if leave {
			return &connClosed{conn, closeWithin(timeout, conn.Detach)}
		}
		err := closeWithin(timeout, conn.Close)
		if err == nil {
			recall.saveGeneration(generation)
		}
		return &connClosed{conn, err}
	})
}

// onDialedDraining closes a connection whose dial was running when the drain came.
func (s *session) onDialedDraining(c actor.Context, msg *dialed) {
	s.abortDial, s.conn = nil, msg.conn
	s.generation = max(s.generation, msg.generation) // which is remembered
	s.continueDraining(c)
}

// onConnDetachedDraining closes the session of a connection that was being released when the
// drain came.
func (s *session) onConnDetachedDraining(c actor.Context, msg *connDetached) {
	if msg.conn == s.oldConn {
		s.oldConn, s.resumable = nil, s.oldConn
	}
	s.closingConn, s.graceEnds = nil, time.Now()
	s.continueDraining(c)
}

// onConnClosed closes the next connection.
func (s *session) onConnClosed(c actor.Context, msg *connClosed) {
	s.closingConn, s.graceEnds = nil, time.Now()
	switch {
	case msg.conn == s.conn:
		s.conn = nil
	case msg.conn == s.oldConn:
		s.oldConn = nil
	case msg.conn == s.resumable:
		s.resumable = nil
	}
	if msg.err != nil {
		s.lastMessage.leftovers = append(s.lastMessage.leftovers, leftover{conn: msg.conn, reason: msg.err.Error()})
	}
	s.continueDraining(c)
}

// cancelRunning cancels what runs on the old connection: its grace is over.
func (s *session) cancelRunning() {
	for k := range s.running.all() {
		k.cancel()
	}
}

// onStopped is the last that is done. After gone there is nothing left to do;
// but anybody may stop any actor.
func (s *session) onStopped(c actor.Context) {
	s.stopTimer()
	if s.abortDial != nil {
		s.abortDial()
	}
	s.cancelRunning()
	for _, k := range s.owed() {
		if k.caller != nil {
			f := k.failure(messages.CodeClosed, "the session was stopped")
			f.MayHaveRun = f.MayHaveRun || k.conn != nil
			c.Send(k.caller, f)
		}
	}
	s.parked.take()
	s.running.take()
	for _, conn := range []mcpbridge.Conn{s.conn, s.oldConn, s.resumable} {
		if conn != nil {
			go closeWithin(s.cfg.CloseTimeout, conn.Close) //nolint:errcheck // nobody is left who could be told
		}
	}
	s.conn, s.oldConn, s.resumable = nil, nil, nil
	s.mailbox.answerUnread(c)
}
