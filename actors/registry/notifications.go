package registry

import (
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/actors/internal/table"
)

// onNotified publishes a notification, and sends it to the subscribers.
func (r *registry) onNotified(msg *contract.Notified) {
	msg.Heard.Remove()
	contract.About(r.cfg.Logger.Debug(), table.Of(msg.Of).Key, table.Of(msg.Of).Generation).Type("notification", msg.Note).Msg("notification received")
	r.lists.Changed(table.Of(msg.Of), msg.Note)
	r.cfg.Post.Send(r.cfg.Subscriber, msg.Note)
	r.cfg.Post.Send(r.owners.Binding(table.Of(msg.Of).Key.Scope).Subscriber, msg.Note)
	r.cfg.Events.PutOf(msg.Of, contract.MaxQueuedNotifications, msg.Note)
}
