package session

import (
	"time"
)

// saveAfter is how long after a store has not taken a record it is asked again.
const saveAfter = 5 * time.Second

// scheduleSave sets the time at which a store that has not taken the record of the MCP session is asked again.
func (s *session) scheduleSave() {
	if s.cfg.Store != nil && !s.saved && !s.saving {
		s.saveAt = time.Now().Add(saveAfter)
		s.timer.By(s.saveAt)
	}
}

// saveLater asks the store again if that is due.
func (s *session) saveLater() {
	if s.saved || !s.timer.IsDue(s.saveAt) { // a dial since may have saved it
		return
	}
	s.saving, s.saveAt = true, time.Time{}
	conn, generation, store := s.conn, s.generation, &s.store
	s.cfg.Async(&s.mailbox, func() any {
		return &recordSaved{conn, store.SaveLater(conn, generation)}
	})
}

// onRecordSaved notes whether the store has the MCP session.
func (s *session) onRecordSaved(msg *recordSaved) {
	s.saving = false
	if msg.conn == s.conn {
		s.saved = s.saved || msg.saved
	}
}
