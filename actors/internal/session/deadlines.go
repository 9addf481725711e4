package session

import (
	"fmt"
	"slices"
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// serveDeadlines answers the calls whose deadline has passed, and sets the timer for the
// next deadline.
func (s *session) serveDeadlines() {
	now := time.Now()
	s.expireParked(now)
	for k := range s.calls.Running.All() {
		at, quiet := k.EndsAt()
		if quiet && !now.Before(at) && s.questions.IsAsked(k) {
			k.Hear(now)
			at, quiet = k.EndsAt()
		}
		switch {
		case now.Before(at):
			s.timer.By(at)
		case quiet:
			s.cutOff(k, messages.CodeQuiet, fmt.Sprintf("nothing was heard of it for %v", k.Op.Head().Quiet))
		case !k.Run.Replied:
			s.cutOff(k, messages.CodeDeadline, "")
		case k.Run.Conn != nil && k.Run.Conn == s.conns.Current && s.drainOrder == nil:
			s.connectionEnded(&mcpbridge.Error{Class: mcpbridge.Lost, Session: mcpbridge.Broken, Detail: "a cancelled call does not return"})
		}
	}
}

// expireParked answers parked calls that may not wait any longer. Without a connection, the
// registry answers them: it knows what the session is waiting for.
func (s *session) expireParked(now time.Time) {
	var calls []*contract.Call
	for k := range s.calls.Parked.All() {
		if until := k.ParkedUntil(); now.Before(until) {
			s.timer.By(until)
			continue
		}
		s.calls.Parked.Remove(k)
		s.cancelTask(k)
		switch {
		case k.Run.NeedsHint:
			s.out.reply(k, k.FailureOf(k.Run.Lost))
		case s.unheard.cause != nil:
			s.out.reply(k, k.Unavailable(s.unheard.cause))
		case s.conns.Current != nil:
			s.out.reply(k, k.Failure(k.CodeOfWait(now), "while waiting for other calls of the session (MaxInFlight)"))
		default:
			k.Run.Replied = true
			calls = append(calls, k)
		}
	}
	for part := range slices.Chunk(calls, contract.WalkStep) {
		s.out.report(&contract.CallsTimedOut{Of: s.out.of, Calls: part})
	}
}
