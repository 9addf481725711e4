package actors

import (
	"context"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// ending is what a session actor does that was spawned to end sessions of its key that
// no session of ours has: those that could not be ended before, and the one that was
// remembered from before our restart. It takes no calls.
type ending struct {
	left       []unended
	configured bool // there is such a server
	record     *mcpbridge.Record
}

// From the goroutine of an ending session to itself.
type (
	// looked is what the store knows.
	looked struct{ record *mcpbridge.Record }
	// ended is the end of ending: what is left, and how many there are no more.
	ended struct {
		left  []unended
		count int
	}
)

// end begins to end sessions. A restart, after a bug, ends that.
func (s *session) end(c actor.Context) {
	if s.cause != nil {
		s.conclude(c, &ended{left: s.unendedBy(s.cause.Cause.Error())})
		return
	}
	s.grace = time.Now().Add(s.cfg.DrainTimeout + s.cfg.CloseTimeout + patience)
	if s.cfg.Store == nil {
		s.onLooked(c, nil)
		return
	}
	s.state = s.looking
	recall := s.recall()
	s.cfg.work(c, func() any { return &looked{recall.load()} })
}

// looking: the store is asked for the record of the key.
func (s *session) looking(c actor.Context) {
	switch msg := c.Message().(type) {
	case *looked:
		s.onLooked(c, msg.record)
	case *call:
		s.reply(c, msg, msg.failure(messages.CodeClosed, "the session is closing"))
	}
}

// endQueued: the registry has been asked for a grant.
func (s *session) endQueued(c actor.Context) {
	switch msg := c.Message().(type) {
	case *grant:
		s.onEnd(c)
	case *woke:
		s.timer = nil
		s.conclude(c, &ended{left: s.unendedBy("it had to wait too long to be ended")})
	case *call:
		s.reply(c, msg, msg.failure(messages.CodeClosed, "the session is closing"))
	}
}

// endRunning: the sessions are being ended.
func (s *session) endRunning(c actor.Context) {
	switch msg := c.Message().(type) {
	case *ended:
		s.conclude(c, msg)
	case *woke:
		s.timer = nil
	case *call:
		s.reply(c, msg, msg.failure(messages.CodeClosed, "the session is closing"))
	}
}

// endDone: the last message waits for the timer, which has fired.
func (s *session) endDone(c actor.Context) {
	if _, ok := c.Message().(*woke); ok {
		s.timer = nil
		s.bid(c)
	}
}

// onLooked asks for a grant, as a session does that wants to dial. A key of which
// nothing is left needs none.
func (s *session) onLooked(c actor.Context, record *mcpbridge.Record) {
	if record != nil {
		s.generation = max(s.generation, record.Generation)
		if record.Valid() {
			s.ending.record = record
		}
	}
	if len(s.ending.left) == 0 && s.ending.record == nil {
		s.conclude(c, &ended{})
		return
	}
	s.state = s.endQueued
	s.wakeBy(c, s.grace)
	c.Send(s.registry, &wantDial{s.of})
}

// onEnd ends them, one after the other.
func (s *session) onEnd(c actor.Context) {
	s.state = s.endRunning
	e, cfg, recall, generation := *s.ending, s.cfg, s.recall(), s.generation
	s.cfg.work(c, func() any { return e.run(cfg, recall, generation) })
}

// conclude says what is left, when no woke is on its way.
func (s *session) conclude(c actor.Context, msg *ended) {
	s.state = s.endDone
	s.last.left, s.last.ended = msg.left, msg.count
	if s.stopTimer() {
		s.bid(c)
	}
}

// unendedBy returns all that was to be ended.
func (s *session) unendedBy(reason string) (all []unended) {
	for _, one := range s.ending.left {
		one.reason = reason
		all = append(all, one)
	}
	if s.ending.record != nil {
		all = append(all, unended{resume: &s.ending.record.Resume, reason: reason})
	}
	return all
}

// run ends the sessions, and forgets the one that is remembered when it has ended. It
// may block.
func (e ending) run(cfg *Config, recall recall, generation uint64) *ended {
	result := &ended{}
	known := ""
	if e.record != nil {
		known = e.record.SessionID
	}
	forget, seen := e.record != nil, false
	for _, one := range e.left {
		was, reason := one.end(cfg, recall.key)
		if one.reason = reason; reason != "" {
			result.left = append(result.left, one)
		} else if was {
			result.count++
		}
		if known != "" && one.id() == known {
			seen, forget = true, reason == ""
		}
	}
	if e.record != nil && e.configured && !seen {
		one := unended{resume: &e.record.Resume}
		was, reason := one.end(cfg, recall.key)
		if reason != "" {
			one.reason, forget = "the session of before our restart: "+reason, false
			result.left = append(result.left, one)
		} else if was {
			result.count++
		}
	}
	if forget {
		recall.forget(generation)
	}
	return result
}

// end ends one session on its server, and returns why it could not. was is false when
// the server did not know it any more.
func (u unended) end(cfg *Config, key messages.Key) (was bool, reason string) {
	conn := u.conn
	if conn == nil {
		ctx, cancel := context.WithTimeout(context.Background(), cfg.CloseTimeout)
		defer cancel()
		var err error
		conn, err = dial(ctx, cfg.Dialer, mcpbridge.DialRequest{Key: key, Resume: u.resume, Only: true, Down: func(*mcpbridge.Error) {}})
		if e := mcpbridge.AsError(err); e != nil {
			if e.Session == mcpbridge.Gone {
				return false, ""
			}
			return false, e.Error()
		}
	}
	attached := u.conn != nil || conn.Info().Attached
	if err := closing(cfg.CloseTimeout, conn.Close); err != nil {
		return false, err.Error()
	}
	return attached, ""
}
