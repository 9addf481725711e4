package actors

import (
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// cleanup is what a session actor does that was spawned to end sessions of its key that
// no session of ours has: those that could not be ended before, and the one that was
// remembered from before our restart. It takes no calls.
type cleanup struct {
	leftovers  []leftover
	configured bool // there is such a server
	record     *mcpbridge.Record
}

// From the goroutine of an ending session to itself.
type (
	// recordLoaded is what the store knows.
	recordLoaded struct{ record *mcpbridge.Record }
	// leftoversClosed is the end of ending: what is left, and how many there are no more.
	leftoversClosed struct {
		leftovers []leftover
		count     int
	}
)

// startCleanup begins to end sessions. A restart, after a bug, ends that.
func (s *session) startCleanup(c actor.Context) {
	if s.cause != nil {
		s.finishCleanup(c, &leftoversClosed{leftovers: s.leftoversWithReason(s.cause.Cause.Error())})
		return
	}
	s.graceEnds = time.Now().Add(s.cfg.DrainTimeout + s.cfg.CloseTimeout + unresponsiveAfter)
	if s.cfg.Store == nil {
		s.onRecordLoaded(c, nil)
		return
	}
	s.state = s.loadingRecord
	recall := s.store()
	s.cfg.async(c, func() any { return &recordLoaded{recall.load()} })
}

// loadingRecord: the store is asked for the record of the key.
func (s *session) loadingRecord(c actor.Context) {
	switch msg := c.Message().(type) {
	case *recordLoaded:
		s.onRecordLoaded(c, msg.record)
	case *call:
		s.reply(c, msg, msg.failure(messages.CodeClosed, "the session is closing"))
	}
}

// cleanupQueued: the registry has been asked for a grant.
func (s *session) cleanupQueued(c actor.Context) {
	switch msg := c.Message().(type) {
	case *grant:
		s.onCleanupGrant(c)
	case *timerFired:
		s.wakeTimer = nil
		s.finishCleanup(c, &leftoversClosed{leftovers: s.leftoversWithReason("it had to wait too long to be ended")})
	case *call:
		s.reply(c, msg, msg.failure(messages.CodeClosed, "the session is closing"))
	}
}

// cleaningUp: the sessions are being ended.
func (s *session) cleaningUp(c actor.Context) {
	switch msg := c.Message().(type) {
	case *leftoversClosed:
		s.finishCleanup(c, msg)
	case *timerFired:
		s.wakeTimer = nil
	case *call:
		s.reply(c, msg, msg.failure(messages.CodeClosed, "the session is closing"))
	}
}

// cleanupDone: the last message waits for the timer, which has fired.
func (s *session) cleanupDone(c actor.Context) {
	if _, ok := c.Message().(*timerFired); ok {
		s.wakeTimer = nil
		s.sendClosed(c)
	}
}

// onRecordLoaded asks for a grant, as a session does that wants to dial. A key of which
// nothing is left needs none.
func (s *session) onRecordLoaded(c actor.Context, record *mcpbridge.Record) {
	if record != nil {
		s.generation = max(s.generation, record.Generation)
		if record.Valid() {
			s.cleanup.record = record
		}
	}
	if len(s.cleanup.leftovers) == 0 && s.cleanup.record == nil {
		s.finishCleanup(c, &leftoversClosed{})
		return
	}
	s.state = s.cleanupQueued
	s.wakeBy(c, s.graceEnds)
	c.Send(s.registry, &dialRequested{s.registration})
}

// onCleanupGrant ends them, one after the other.
func (s *session) onCleanupGrant(c actor.Context) {
	s.state = s.cleaningUp
	e, cfg, recall, generation := *s.cleanup, s.cfg, s.store(), s.generation
	s.cfg.async(c, func() any { return e.run(cfg, recall, generation) })
}

// finishCleanup says what is left, when no woke is on its way.
func (s *session) finishCleanup(c actor.Context, msg *leftoversClosed) {
	s.state = s.cleanupDone
	s.lastMessage.leftovers, s.lastMessage.cleanedUp = msg.leftovers, msg.count
	if s.stopTimer() {
		s.sendClosed(c)
	}
}

// leftoversWithReason returns all that was to be ended.
func (s *session) leftoversWithReason(reason string) (all []leftover) {
	for _, one := range s.cleanup.leftovers {
		one.reason = reason
		all = append(all, one)
	}
	if s.cleanup.record != nil {
		all = append(all, leftover{resume: &s.cleanup.record.Resume, reason: reason})
	}
	return all
}

// run ends the sessions, and forgets the one that is remembered when it has ended. It
// may block.
func (e cleanup) run(cfg *Config, recall keyStore, generation uint64) *leftoversClosed {
	result := &leftoversClosed{}
	known := ""
	if e.record != nil {
		known = e.record.SessionID
	}
	forget, seen := e.record != nil, false
	for _, one := range e.leftovers {
		was, reason := one.close(cfg, recall.key)
		if one.reason = reason; reason != "" {
			result.leftovers = append(result.leftovers, one)
		} else if was {
			result.count++
		}
		if known != "" && one.sessionID() == known {
			seen, forget = true, reason == ""
		}
	}
	if e.record != nil && e.configured && !seen {
		one := leftover{resume: &e.record.Resume}
		was, reason := one.close(cfg, recall.key)
		if reason != "" {
			one.reason, forget = "the session of before our restart: "+reason, false
			result.leftovers = append(result.leftovers, one)
		} else if was {
			result.count++
		}
	}
	if forget {
		recall.saveGeneration(generation)
	}
	return result
}
