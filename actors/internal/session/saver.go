package session

import (
	"time"

	"github.com/mcpactor/mcpactor/actors/internal/alarm"
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/mailbox"
	"github.com/mcpactor/mcpactor/internal/dial"
)

// saveAfter is the pause before a store that has not taken a record is asked again.
const saveAfter = 5 * time.Second

// saver asks the store again to take the record of the MCP session, while the session is ready.
type saver struct {
	store *contract.KeyStore
	to    *mailbox.Mailbox // of the session
	timer *alarm.Timer
	last  *lastSession

	at     time.Time // when the store is asked, or zero
	saving bool      // recordSaved will come
}

// schedule sets the time at which the store is asked, unless it has the record.
func (v *saver) schedule() {
	if v.store.Cfg.Store != nil && !v.last.saved && !v.saving {
		v.at = time.Now().Add(saveAfter)
		v.timer.By(v.at)
	}
}

// saveIfDue asks the store if that is due, and no dial since has saved the record.
func (v *saver) saveIfDue(conn dial.Conn) {
	if v.last.saved || !v.timer.IsDue(v.at) {
		return
	}
	v.saving, v.at = true, time.Time{}
	generation := v.last.generation
	v.store.Cfg.Async(v.to, func() any {
		return &recordSaved{conn, v.store.SaveLater(conn, generation)}
	})
}

// returned notes whether the store has taken the record, if it is that of the current connection.
func (v *saver) returned(msg *recordSaved, current dial.Conn) {
	v.saving = false
	if msg.conn == current {
		v.last.saved = v.last.saved || msg.saved
	}
}
