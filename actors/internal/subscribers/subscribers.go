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
	Tail

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
		if !s.HasSubscriber(subscriber) && !contract.SamePID(subscriber, s.Tail.to) {
			s.Post.Unwatch(subscriber, s.Self)
		}
	}
}

// Adopt takes over the settings and the tail of the previous session of the key, which was restarted.
func (s *Subscribers) Adopt(msg *contract.AdoptSettings) {
	s.Settings = msg.Settings
	if msg.Tail != nil {
		s.TailTo(msg.Tail)
	}
	for _, subscription := range s.Subscriptions {
		if subscription.Subscriber != nil {
			s.Post.Watch(subscription.Subscriber, s.Self)
		}
	}
}

// TailTo replaces the subscriber of the tail.
func (s *Subscribers) TailTo(subscriber *actor.PID) {
	if before := s.Tail.to; before != nil && !s.HasSubscriber(before) {
		s.Post.Unwatch(before, s.Self)
	}
	if s.Tail.follow(subscriber); subscriber != nil {
		s.Post.Watch(subscriber, s.Self)
	}
}

// SendLines sends the lines of the tail that its subscriber can take.
func (s *Subscribers) SendLines() {
	for _, line := range s.Tail.take() {
		s.Post.Request(s.Tail.to, line, s.Self)
	}
}

// OnLineTaken makes room for the next line.
func (s *Subscribers) OnLineTaken(msg LineTaken) {
	if s.Tail.taken(msg.TakenBy()) {
		s.SendLines()
	}
}

// Terminated ends what a subscriber has subscribed to.
func (s *Subscribers) Terminated(who *actor.PID) {
	s.RemoveSubscriber(who)
	if s.Tail.to != nil && contract.SamePID(s.Tail.to, who) {
		s.Tail.follow(nil)
	}
}

// Close sends the last lines of the tail, and ends the watching of all subscribers, because each watched actor keeps the
// PIDs of its watchers. It returns the subscriber of the tail, or nil.
func (s *Subscribers) Close() (tail *actor.PID) {
	tail = s.Tail.to
	s.SendLines()
	s.TailTo(nil)
	for _, subscription := range s.Subscriptions {
		if subscription.Subscriber != nil {
			s.Post.Unwatch(subscription.Subscriber, s.Self)
		}
	}
	return tail
}
