package actors

import (
	"errors"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// cancelPause is how long a connection stays open after its calls were cancelled, so that
// notifications/cancelled reaches the server.
const cancelPause = 50 * time.Millisecond

// onDrain starts to drain. Another drain may follow that leaves calls less time.
func (s *session) onDrain(c actor.Context, msg *drain) {
	s.state, s.drainOrder = s.draining, msg
	parked := s.parked.take()
	if !msg.evict {
		for _, k := range parked {
			s.reply(c, k, k.closedWhileParked())
		}
		parked = nil
	}
	for part := range slices.Chunk(parked, walkStep) {
		s.report(&callsHandedBack{s.registration, part})
	}
	s.graceEnds = s.endOfGrace(msg)
	if s.abortDial != nil {
		s.abortDial(msg.endOfDial())
	}
	s.continueDraining(c)
}

// errLeft is the cause of the end of a dial whose connection, if there is one yet, is only
// detached.
var errLeft = errors.New("the MCP session is left open")

// endOfDial returns why a dial that runs is ended, or nil.
func (o *drain) endOfDial() error {
	if o.leave {
		return errLeft
	}
	return nil
}

// code returns the code of calls that are cut off.
func (o *drain) code() messages.Code {
	if o.moves {
		return messages.CodeLost
	}
	return messages.CodeClosed
}

// endOfGrace returns when the calls that run are cut off.
func (s *session) endOfGrace(order *drain) time.Time {
	now := time.Now()
	switch {
	case order.now:
		return now
	case order.restart || !order.evict:
		return now.Add(s.limits.DrainTimeout)
	}
	at := s.graceEnds
	for k := range s.running.all() {
		if end := k.deadline.Add(s.limits.CloseTimeout); end.After(at) {
			at = end
		}
	}
	return at
}

// continueDraining takes the next step of draining: wait for running calls, close the
// connections one after the other, and send sessionClosed.
func (s *session) continueDraining(c actor.Context) {
	now := time.Now()
	switch {
	case s.abortDial != nil || s.closingConn != nil:
		return // dialed, connDetached or connClosed will come
	case s.waitsForCalls() && now.Before(s.graceEnds):
		s.wakeBy(c, s.graceEnds)
		return
	}
	for k := range s.running.all() {
		if !k.replied {
			s.cutOff(c, k, s.drainOrder.code(), "")
		}
	}
	for _, conn := range []mcpbridge.Conn{s.conn, s.oldConn, s.resumable} {
		if conn != nil {
			s.closeConn(c, conn)
			return
		}
	}
	if (s.running.count > 0 || s.requests > 0 || s.pinging) && now.Before(s.graceEnds.Add(unresponsiveAfter)) {
		s.wakeBy(c, s.graceEnds.Add(unresponsiveAfter)) // they are cancelled, and return soon
		return
	}
	if s.stopTimer() {
		s.sendClosed(c)
	}
}

// sendClosed sends the last message.
func (s *session) sendClosed(c actor.Context) {
	s.withdrawAll(c)
	tail := s.tail.subscriber
	s.endTail(c)
	s.unwatchSubscribers(c)
	s.state = s.closed
	s.lastMessage.of, s.lastMessage.lifetime = s.registration, s.lifetime()
	if s.drainOrder != nil && s.drainOrder.restart {
		s.lastMessage.settings, s.lastMessage.tail = s.settings, tail
	}
	s.report(&s.lastMessage)
}

// waitsForCalls reports whether a caller waits for a call that runs.
func (s *session) waitsForCalls() bool {
	for k := range s.running.all() {
		if !k.replied {
			return true
		}
	}
	return false
}

// closeConn closes a connection and its MCP session, or detaches the connection if the MCP
// session is to stay open.
func (s *session) closeConn(c actor.Context, conn mcpbridge.Conn) {
	s.closingConn = conn
	generation := s.generation
	pause, timeout, store := s.running.count > 0, s.limits.CloseTimeout, s.store()
	keep := s.drainOrder.leave // the record
	leave := keep && conn.Resume() != nil
	s.cfg.async(&s.mailbox, func() any {
		if pause {
			<-time.After(cancelPause)
		}
		if leave {
			return &connClosed{conn, closeWithin(timeout, conn.Detach)}
		}
		err := closeWithin(timeout, conn.Close)
		if err == nil && !keep {
			store.saveGeneration(generation)
		}
		return &connClosed{conn, err}
	})
}

// onDialedDraining takes the connection of a dial that was running when the drain came.
func (s *session) onDialedDraining(c actor.Context, msg *dialed) {
	s.abortDial, s.conn = nil, msg.conn
	s.generation = max(s.generation, msg.generation) // the store has it
	s.continueDraining(c)
}

// onConnDetachedDraining takes a connection that was being detached when the drain came:
// its MCP session is to be closed.
func (s *session) onConnDetachedDraining(c actor.Context, msg *connDetached) {
	if msg.conn == s.oldConn {
		s.oldConn, s.resumable = nil, s.oldConn
	}
	s.closingConn, s.graceEnds = nil, time.Now()
	s.continueDraining(c)
}

// onConnClosed notes that a connection is closed.
func (s *session) onConnClosed(c actor.Context, msg *connClosed) {
	s.closingConn, s.graceEnds = nil, time.Now()
	switch msg.conn {
	case s.conn:
		s.conn = nil
	case s.oldConn:
		s.oldConn = nil
	case s.resumable:
		s.resumable = nil
	}
	if msg.err != nil {
		s.lastMessage.leftovers = append(s.lastMessage.leftovers, leftover{conn: msg.conn, reason: msg.err.Error()})
	}
	s.continueDraining(c)
}

// cancelRunning cancels all calls that run.
func (s *session) cancelRunning() {
	for k := range s.running.all() {
		k.ctx.Cancel()
	}
}

// onStopping aborts the dial. After Stopping, no message reaches the actor: a dial that
// returns later was aborted, and closes its connection itself.
func (s *session) onStopping() {
	if s.abortDial != nil {
		s.abortDial(nil)
	}
}

// onStopped answers calls and closes connections that are left. After sessionClosed there
// are none, but user code can stop any actor before.
func (s *session) onStopped(c actor.Context) {
	s.stopTimer()
	s.tail.stderr.Follow(nil)
	if s.abortDial != nil {
		s.abortDial(nil)
	}
	s.cancelRunning()
	for _, k := range s.owed() {
		s.replyStopped(c, k)
	}
	s.withdrawAll(c)
	s.parked.take()
	s.running.take()
	for _, conn := range []mcpbridge.Conn{s.conn, s.oldConn, s.resumable} {
		if conn != nil {
			go closeWithin(s.limits.CloseTimeout, conn.Close) //nolint:errcheck // nobody is left who could be told
		}
	}
	s.conn, s.oldConn, s.resumable = nil, nil, nil
	s.mailbox.Close(func(message any) {
		if k, is := message.(*call); is {
			s.replyStopped(c, k)
			return
		}
		s.cfg.answer(message)
	})
}

// replyStopped answers a call that is left when other code has stopped the actor.
func (s *session) replyStopped(c actor.Context, k *call) {
	f := k.failure(messages.CodeClosed, "the session was stopped")
	f.MayHaveRun = f.MayHaveRun || k.conn != nil
	s.reply(c, k, f)
}
