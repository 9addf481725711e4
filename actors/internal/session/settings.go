package session

import (
	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/messages"
)

// recordSettings records an operation that has succeeded. Subscribers are watched: a
// subscriber that stops loses its subscriptions.
func (s *session) recordSettings(op messages.Operation) {
	s.settings.Record(op)
	subscriber := op.Head().Subscriber
	if subscriber == nil {
		return
	}
	switch op.(type) {
	case *messages.Subscribe:
		s.cfg.Post.Watch(subscriber, s.self)
	case *messages.Unsubscribe:
		if !s.settings.HasSubscriber(subscriber) && !contract.SamePID(subscriber, s.tail.subscriber) {
			s.cfg.Post.Unwatch(subscriber, s.self)
		}
	}
}

// unwatchSubscribers ends the watching of subscribers, because each watched actor keeps the
// PIDs of its watchers.
func (s *session) unwatchSubscribers() {
	for _, subscription := range s.settings.Subscriptions {
		if subscription.Subscriber != nil {
			s.cfg.Post.Unwatch(subscription.Subscriber, s.self)
		}
	}
}

// onSettingsAdopted takes over the settings and the tail of the previous session of the
// key, which was restarted. The next dial applies them.
func (s *session) onSettingsAdopted(msg *contract.AdoptSettings) {
	s.settings = msg.Settings
	if msg.Tail != nil {
		s.onTail(msg.Tail)
	}
	for _, subscription := range s.settings.Subscriptions {
		if subscription.Subscriber != nil {
			s.cfg.Post.Watch(subscription.Subscriber, s.self)
		}
	}
}
