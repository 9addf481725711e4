package session

import (
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/mcpbridge"
)

// early is what a connection has sent before dialed has come.
type early struct {
	end   *mcpbridge.Error // the connection has ended, or nil
	notes []*notificationReceived
}

// keep keeps a notification, if there is room.
func (e *early) keep(msg *notificationReceived) {
	if len(e.notes) < contract.MaxQueuedNotifications {
		e.notes = append(e.notes, msg)
	} else {
		msg.heard.Remove()
	}
}
