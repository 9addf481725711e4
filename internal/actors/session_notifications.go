package actors

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// onNotification sends progress to the subscriber of its operation, until the operation is
// answered, and any other notification to its subscribers and to the registry.
func (s *session) onNotification(c actor.Context, msg *notificationReceived) {
	stamp := s.stamp()
	if msg.of != nil {
		msg.heard.remove()
		for k := range s.running.all() {
			if k.op == msg.of && !k.replied {
				stamp.Generation = k.generation
				msg.note.SetStamp(stamp)
				s.cfg.Post.Send(k.op.Head().Subscriber, msg.note)
			}
		}
		return
	}
	msg.note.SetStamp(stamp)
	if updated, ok := msg.note.(*messages.ResourceUpdated); ok {
		for _, subscriber := range s.settings.subscribers(updated.URI) {
			s.cfg.Post.Send(subscriber, updated)
		}
	}
	s.report(&notified{s.registration, msg.note, msg.heard})
}

// onEarlyNotification keeps a notification for onDialed.
func (s *session) onEarlyNotification(msg *notificationReceived) {
	if len(s.earlyNotifications) < maxQueuedNotifications {
		s.earlyNotifications = append(s.earlyNotifications, msg)
	} else {
		msg.heard.remove()
	}
}

// expectsNotifications reports whether a caller wants the notifications of the session, so
// that the session is useful even without calls.
func (s *session) expectsNotifications() bool {
	return len(s.settings.subscriptions) > 0 || s.cfg.Subscriber != nil
}
