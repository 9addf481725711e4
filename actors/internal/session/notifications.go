package session

import (
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// onNotification sends progress to the subscriber of its operation, until the operation is
// answered, and any other notification to its subscribers and to the registry.
func (s *session) onNotification(msg *notificationReceived) {
	stamp := s.stamp()
	if msg.of != nil {
		msg.heard.Remove()
		for k := range s.calls.Unanswered() {
			if k.Op == msg.of {
				k.Hear(stamp.Time)
				stamp.Generation = k.Generation
				msg.note.SetStamp(stamp)
				if to := k.Op.Head().Subscriber; to != nil {
					s.cfg.Post.Send(to, msg.note)
				}
			}
		}
		return
	}
	msg.note.SetStamp(stamp)
	switch note := msg.note.(type) {
	case *messages.ResourceUpdated:
		for _, subscriber := range s.subscribers.Subscribers(note.URI) {
			s.cfg.Post.Send(subscriber, note)
		}
	case *messages.ServerLog:
		if op, is := s.calls.OnlyOperation(); is && note.Operation.Method == "" {
			note.Operation = messages.RefTo(op)
		}
	}
	s.report(&contract.Notified{Of: s.registration, Note: msg.note, Heard: msg.heard})
}

// expectsNotifications reports whether a caller wants the notifications of the session, so
// that the session is useful even without calls.
func (s *session) expectsNotifications() bool {
	return len(s.subscribers.Subscriptions) > 0 || s.cfg.Subscriber != nil || s.bind.Subscriber != nil
}
