package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// onNotified publishes a notification, and sends it to the subscriber.
func (r *registry) onNotified(c actor.Context, msg *notified) {
	msg.heard.remove()
	about(r.cfg.Logger.Debug(), msg.of.key, msg.of.generation).Type("notification", msg.note).Msg("notification received")
	if r.cfg.Subscriber != nil {
		r.cfg.Post.Send(r.cfg.Subscriber, msg.note)
	}
	r.cfg.Events.PutOf(msg.of, maxQueuedNotifications, msg.note)
}

// publish logs and publishes an event.
func (r *registry) publish(event messages.Event) {
	r.logEvent(event)
	r.cfg.Events.Put(event)
}
