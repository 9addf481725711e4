package session

import (
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/owed"
	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// cancelPause is how long a connection stays open after its calls were cancelled, so that
// notifications/cancelled reaches the server.
const cancelPause = 50 * time.Millisecond

// onDrain starts to drain. A later drain may leave calls less time.
func (s *session) onDrain(msg *contract.Drain) {
	s.drainOrder = msg
	parked := s.calls.Parked.Take()
	if !msg.Evict {
		for _, k := range parked {
			s.out.reply(k, k.ClosedWhileParked())
		}
		parked = nil
	}
	for part := range slices.Chunk(parked, contract.WalkStep) {
		s.out.report(&contract.CallsHandedBack{Of: s.out.of, Calls: part})
	}
	s.graceEnds = endOfGrace(msg, s.limits, s.graceEnds, &s.calls)
	if msg.Evict { // the next session follows them
		s.calls.InterruptTasks(func(k *contract.Call) bool { return !msg.Moves || k.IsDurable() })
	}
	if msg.Leave {
		s.dials.end(errLeft)
	} else {
		s.dials.end(nil)
	}
	s.continueDraining()
}

// endOfGrace returns when the calls that run are cut off. before is when they would be cut off without the drain.
func endOfGrace(order *contract.Drain, limits *mcpbridge.Limits, before time.Time, calls *owed.Calls) time.Time {
	now := time.Now()
	switch {
	case order.Now:
		return now
	case order.Restart || !order.Evict:
		return now.Add(limits.DrainTimeout)
	}
	at := before
	for k := range calls.Running.All() {
		if end := k.LastsUntil().Add(limits.CloseTimeout); end.After(at) {
			at = end
		}
	}
	return at
}

// continueDraining takes the next step of draining: wait for running calls, close the
// connections one after the other, and send SessionClosed.
func (s *session) continueDraining() {
	now := time.Now()
	switch {
	case s.dials.isRunning() || s.dials.closing > 0 || s.conns.Closing != nil || s.saver.saving:
		return // dialed, leftClosed, connDetached, connClosed or recordSaved will come
	case s.calls.AnyUnanswered() && now.Before(s.graceEnds):
		s.timer.By(s.graceEnds)
		return
	}
	for k := range s.calls.Unanswered() {
		s.cutOff(k, s.drainOrder.Code(), "")
	}
	if left := s.conns.All(); len(left) > 0 {
		s.closeConn(left[0])
		return
	}
	if (s.calls.Running.Count > 0 || s.requests.running > 0 || s.keepalive.pinging) && now.Before(s.graceEnds.Add(contract.UnresponsiveAfter)) {
		s.timer.By(s.graceEnds.Add(contract.UnresponsiveAfter)) // they are cancelled, and return soon
		return
	}
	if s.timer.Stop() {
		s.sendClosed()
	}
}

// closed: SessionClosed was sent, and the registry is about to stop the actor.
func closed(any) {}

// sendClosed sends the last message.
func (s *session) sendClosed() {
	s.questions.Close()
	s.subscribers.Close()
	s.state = closed
	s.lastMessage.Of, s.lastMessage.Lifetime = s.out.of, s.history.lifetime()
	if s.drainOrder != nil && s.drainOrder.Restart {
		s.lastMessage.Settings = s.subscribers.Settings
	}
	s.out.report(&s.lastMessage)
}

// closeConn closes a connection and its MCP session, or detaches the connection if the MCP
// session is to stay open.
func (s *session) closeConn(conn dial.Conn) {
	s.conns.Closing = conn
	generation := s.last.generation
	pause, timeout, store := s.calls.Running.Count > 0, s.limits.CloseTimeout, &s.store
	leave := s.drainOrder.Leave && s.last.saved && conn.Resume() != nil && !s.conns.IsGone(conn)
	s.left = s.left || leave
	keep := s.drainOrder.Leave || s.left // the record
	s.cfg.Async(&s.mailbox, func() any {
		if pause {
			<-time.After(cancelPause)
		}
		if leave {
			return &connClosed{conn, contract.CloseWithin(timeout, conn.Detach)}
		}
		err := contract.CloseWithin(timeout, conn.Close)
		if err == nil && !keep {
			store.SaveGeneration(generation)
		}
		return &connClosed{conn, err}
	})
}

// onConnDetachedDraining takes a connection that was being detached when the drain came:
// its MCP session is to be closed.
func (s *session) onConnDetachedDraining(msg *connDetached) {
	s.conns.DetachedForGood(msg.conn)
	s.graceEnds = time.Now()
}

// onConnClosed notes that a connection is closed.
func (s *session) onConnClosed(msg *connClosed) {
	s.conns.Closed(msg.conn)
	s.graceEnds = time.Now()
	if msg.err != nil {
		s.lastMessage.Leftovers = append(s.lastMessage.Leftovers, contract.Leftover{Conn: msg.conn, Reason: msg.err.Error()})
	}
}
