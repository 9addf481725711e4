package session

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// onTimerFired serves the deadlines of calls.
func (s *session) onTimerFired(c actor.Context) {
	s.wakeTimer = nil
	s.serveDeadlines(c)
}

// serveDeadlines answers the calls whose deadline has passed, and sets the timer for the
// next deadline.
func (s *session) serveDeadlines(c actor.Context) {
	now := time.Now()
	s.expireParked(c, now)
	for k := range s.running.All() {
		at, quiet := k.EndsAt()
		if quiet && !now.Before(at) && s.isAsked(k) {
			k.Hear(now)
			at, quiet = k.EndsAt()
		}
		switch {
		case now.Before(at):
			s.wakeBy(c, at)
		case quiet:
			s.cutOff(c, k, messages.CodeQuiet, fmt.Sprintf("nothing was heard of it for %v", k.Op.Head().Quiet))
		case !k.Replied:
			s.cutOff(c, k, messages.CodeDeadline, "")
		case k.Conn == s.conn && s.drainOrder == nil:
			s.connectionEnded(&mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Detail: "a cancelled call does not return"})
		}
	}
}

// expireParked answers parked calls that may not wait any longer. Without a connection, the
// registry answers them: it knows what the session is waiting for.
func (s *session) expireParked(c actor.Context, now time.Time) {
	var calls []*contract.Call
	for k := range s.parked.All() {
		if until := k.ParkedUntil(); now.Before(until) {
			s.wakeBy(c, until)
			continue
		}
		s.parked.Remove(k)
		s.cancelTask(k)
		switch {
		case k.NeedsHint:
			s.reply(c, k, k.FailureOf(k.Lost))
		case s.unheard != nil:
			s.reply(c, k, k.Unavailable(s.unheard))
		case s.conn != nil:
			s.reply(c, k, k.Failure(k.CodeOfWait(now), "while waiting for other calls of the session (MaxInFlight)"))
		default:
			k.Replied = true
			calls = append(calls, k)
		}
	}
	for part := range slices.Chunk(calls, contract.WalkStep) {
		s.report(&contract.CallsTimedOut{Of: s.registration, Calls: part})
	}
}

// isDue reports whether a time has come, and has the session look again if it is in the future. The zero time does not come.
func (s *session) isDue(c actor.Context, at time.Time) bool {
	if time.Now().Before(at) {
		s.wakeBy(c, at)
		return false
	}
	return !at.IsZero()
}

// ping sends a keepalive ping if one is due. If the previous one has not returned, it ends
// the incarnation.
func (s *session) ping(c actor.Context) {
	if !s.isDue(c, s.pingAt) {
		return
	}
	if s.pinging {
		s.connectionEnded(&mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Detail: "the server did not answer a ping"})
	}
	s.pinging = true
	conn, timeout := s.conn, s.server.KeepAlive
	s.cfg.Async(&s.mailbox, func() any {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		ping := &contract.Call{Op: &messages.Ping{}}
		_, err := ping.Perform(ctx, conn)
		return &pingReturned{conn, err}
	})
	s.schedulePing(c)
}

// onPingReturned notes that the server has answered. An error of the server is an answer
// as well.
func (s *session) onPingReturned(msg *pingReturned) {
	e := mcpbridge.AsError(msg.err)
	s.noteGone(msg.conn, e)
	if msg.conn != s.conn {
		return
	}
	switch {
	case e == nil || !e.Session.HasEnded() && e.Class != mcpbridge.Deadline:
		s.pinging = false
	case e.Session.HasEnded():
		s.connectionEnded(e)
	}
}

// wakeBy makes sure that timerFired comes at a time or earlier.
func (s *session) wakeBy(c actor.Context, at time.Time) {
	if s.wakeTimer != nil && !at.Before(s.wakeAt) {
		return
	}
	if s.wakeTimer != nil && !s.wakeTimer.Stop() {
		return // timerFired is in the mailbox
	}
	s.wakeAt = at
	s.wakeTimer = contract.After(&s.mailbox, max(0, time.Until(at)), &timerFired{})
}

// stopTimer stops the timer, and reports whether timerFired will not come.
func (s *session) stopTimer() bool {
	if s.wakeTimer == nil || s.wakeTimer.Stop() {
		s.wakeTimer = nil
		return true
	}
	return false
}

// schedulePing sets the time of the next keepalive ping.
func (s *session) schedulePing(c actor.Context) {
	if s.server.KeepAlive > 0 {
		s.pingAt = time.Now().Add(s.server.KeepAlive)
		s.wakeBy(c, s.pingAt)
	}
}
