package session

import (
	"slices"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/messages"
)

// Cleanup is the work of a session actor that was spawned to close the leftovers of its
// key: MCP sessions that could not be closed before, and the one in the store, from before
// a restart of this process. Such an actor takes no calls. Its states are
//
//	loadingRecord ──▶ cleanupQueued ──grant──▶ cleaningUp ──▶ cleanupDone ──▶ closed
type Cleanup struct {
	Leftovers []contract.Leftover
	Leave     bool              // the record stays, unless it is that of a leftover
	record    *mcpbridge.Record // nil if the store has none
	runs      bool              // leftoversClosed will come
}

// keep keeps the record of the store, if its MCP session is to be closed.
func (w *Cleanup) keep(record *mcpbridge.Record) {
	if record != nil && record.Valid() && (!w.Leave || w.has(record.SessionID)) {
		w.record = record
	}
}

// has reports whether an MCP session is one of the leftovers.
func (w *Cleanup) has(sessionID string) bool {
	return slices.ContainsFunc(w.Leftovers, func(one contract.Leftover) bool { return one.SessionID() == sessionID })
}

// From the goroutines of a cleanup to the session.
type (
	// recordLoaded brings the record of the store, or nil.
	recordLoaded struct{ record *mcpbridge.Record }
	// leftoversClosed brings the leftovers that could not be closed, and how many were.
	leftoversClosed struct {
		leftovers []contract.Leftover
		count     int
	}
)

// startCleanup begins with the work. A restart, which only a bug causes, ends it, unless it is under way: its
// connections are awaited.
func (s *session) startCleanup() {
	if s.cleanup.runs {
		s.state = s.cleaningUp
		return
	}
	if s.cause != nil {
		s.finishCleanup(&leftoversClosed{leftovers: s.leftoversWithReason(s.cause.Cause.Error())})
		return
	}
	s.graceEnds = time.Now().Add(s.limits.DrainTimeout + s.limits.CloseTimeout + contract.UnresponsiveAfter)
	if s.cfg.Store == nil {
		s.onRecordLoaded(nil)
		return
	}
	s.state = s.loadingRecord
	store := &s.store
	s.cfg.Async(&s.mailbox, func() any { return &recordLoaded{store.Load()} })
}

// loadingRecord: the record of the store is awaited.
func (s *session) loadingRecord(c actor.Context) {
	switch msg := c.Message().(type) {
	case *recordLoaded:
		s.onRecordLoaded(msg.record)
	case *contract.Call:
		s.reply(msg, msg.Failure(messages.CodeClosed, "the session is closing"))
	}
}

// cleanupQueued: the grant is awaited.
func (s *session) cleanupQueued(c actor.Context) {
	switch msg := c.Message().(type) {
	case *contract.Grant:
		s.onCleanupGrant()
	case *timerFired:
		s.timer.Fired()
		s.finishCleanup(&leftoversClosed{leftovers: s.leftoversWithReason("it waited too long for its turn to be closed")})
	case *contract.Call:
		s.reply(msg, msg.Failure(messages.CodeClosed, "the session is closing"))
	}
}

// cleaningUp: the leftovers are being closed.
func (s *session) cleaningUp(c actor.Context) {
	switch msg := c.Message().(type) {
	case *leftoversClosed:
		s.finishCleanup(msg)
	case *timerFired:
		s.timer.Fired()
	case *contract.Call:
		s.reply(msg, msg.Failure(messages.CodeClosed, "the session is closing"))
	}
}

// cleanupDone: timerFired is in the mailbox, and sessionClosed is sent after it.
func (s *session) cleanupDone(c actor.Context) {
	if _, ok := c.Message().(*timerFired); ok {
		s.timer.Fired()
		s.sendClosed()
	}
}

// onRecordLoaded asks for a grant, as for a dial. A key without leftovers needs none.
func (s *session) onRecordLoaded(record *mcpbridge.Record) {
	if s.cleanup.keep(record); record != nil {
		s.generation = max(s.generation, record.Generation)
	}
	if len(s.cleanup.Leftovers) == 0 && s.cleanup.record == nil {
		s.finishCleanup(&leftoversClosed{})
		return
	}
	s.state = s.cleanupQueued
	s.timer.By(s.graceEnds)
	s.report(&contract.DialRequested{Of: s.registration})
}

// onCleanupGrant closes the leftovers.
func (s *session) onCleanupGrant() {
	s.state, s.cleanup.runs = s.cleaningUp, true
	w, timeout, store, generation := *s.cleanup, s.limits.CloseTimeout, &s.store, s.generation
	s.cfg.Async(&s.mailbox, func() any { return w.run(timeout, store, generation) })
}

// finishCleanup sends the last message, unless timerFired comes first.
func (s *session) finishCleanup(msg *leftoversClosed) {
	s.state, s.cleanup.runs = s.cleanupDone, false
	s.lastMessage.Leftovers, s.lastMessage.CleanedUp = msg.leftovers, msg.count
	if s.timer.Stop() {
		s.sendClosed()
	}
}

// leftoversWithReason returns all leftovers, with a reason why they are not closed.
func (s *session) leftoversWithReason(reason string) (all []contract.Leftover) {
	for _, one := range s.cleanup.Leftovers {
		one.Reason = reason
		all = append(all, one)
	}
	if s.cleanup.record != nil {
		all = append(all, contract.Leftover{Resume: &s.cleanup.record.Resume, Reason: reason})
	}
	return all
}

// run closes the leftovers one after the other, each within a timeout, and clears the record
// when its MCP session is closed. It may block.
func (w Cleanup) run(timeout time.Duration, store *contract.KeyStore, generation uint64) *leftoversClosed {
	result := &leftoversClosed{}
	known := ""
	if w.record != nil {
		known = w.record.SessionID
	}
	forget, seen := w.record != nil, false
	for _, one := range w.Leftovers {
		existed, reason := one.Close(*store, timeout)
		if one.Reason = reason; reason != "" {
			result.leftovers = append(result.leftovers, one)
		} else if existed {
			result.count++
		}
		if known != "" && one.SessionID() == known {
			seen, forget = true, reason == ""
		}
	}
	if w.record != nil && !seen {
		one := contract.Leftover{Resume: &w.record.Resume}
		existed, reason := one.Close(*store, timeout)
		if reason != "" {
			one.Reason, forget = "the session from before the restart of this process: "+reason, false
			result.leftovers = append(result.leftovers, one)
		} else if existed {
			result.count++
		}
	}
	if forget {
		store.Forget(known, generation)
	}
	return result
}
