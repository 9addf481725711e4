// Package subscribers has what callers have set on a session, and who gets what its server sends.
package subscribers

import (
	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/actors/internal/contract"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/messages"
)

// Subscribers belong to one session, which watches them: a subscriber that stops loses its subscriptions.
type Subscribers struct {
	contract.Settings // applied to each new MCP session

	Post *relay.Post
	Self *actor.PID // of the session
}

// Record records an operation that has succeeded.
func (s *Subscribers) Record(op messages.Operation) {
	s.Settings.Record(op)
	subscriber := op.Head().Subscriber
	if subscriber == nil {
		return
	}
	switch op.(type) {
	case *messages.Subscribe:
		s.Post.Watch(subscriber, s.Self)
	case *messages.Unsubscribe:
		if !s.HasSubscriber(subscriber) {
			s.Post.Unwatch(subscriber, s.Self)
		}
	}
}

// Adopt takes over the settings of the previous session of the key, which was restarted.
func (s *Subscribers) Adopt(msg *contract.AdoptSettings) {
	s.Settings = msg.Settings
	for _, subscription := range s.Subscriptions {
		if subscription.Subscriber != nil {
			s.Post.Watch(subscription.Subscriber, s.Self)
		}
	}
}

// Close ends the watching of all subscribers, because each watched actor keeps the PIDs of its watchers.
func (s *Subscribers) Close() {
	for _, subscription := range s.Subscriptions {
		if subscription.Subscriber != nil {
			s.Post.Unwatch(subscription.Subscriber, s.Self)
		}
	}
}
