package actors

import (
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// settings is what a server keeps for a session because it was told to, and what the
// next session is told again.
type settings struct {
	roots         *messages.SetRoots // told while dialing
	level         *messages.SetLogLevel
	subscriptions []*messages.Subscribe
}

// record takes in an operation that went well. What it has returned before stays as
// it is.
func (s *settings) record(op messages.Operation) {
	switch op := op.(type) {
	case *messages.SetRoots:
		s.roots = op
	case *messages.SetLogLevel:
		s.level = op
	case *messages.Subscribe:
		s.remove(op.URI, op.Subscriber)
		s.subscriptions = append(s.subscriptions, op)
	case *messages.Unsubscribe:
		s.remove(op.URI, op.Subscriber)
	}
}

// remove forgets the subscription of one subscriber.
func (s *settings) remove(uri string, subscriber *actor.PID) {
	s.subscriptions = slices.DeleteFunc(slices.Clone(s.subscriptions), func(s *messages.Subscribe) bool {
		return s.URI == uri && samePID(s.Subscriber, subscriber)
	})
}

// hasSubscriber reports whether a subscriber has a subscription.
func (s *settings) hasSubscriber(subscriber *actor.PID) bool {
	return slices.ContainsFunc(s.subscriptions, func(s *messages.Subscribe) bool { return samePID(s.Subscriber, subscriber) })
}

// removeSubscriber forgets all subscriptions of a subscriber, which has stopped.
func (s *settings) removeSubscriber(subscriber *actor.PID) {
	s.subscriptions = slices.DeleteFunc(slices.Clone(s.subscriptions), func(s *messages.Subscribe) bool { return samePID(s.Subscriber, subscriber) })
}

func samePID(one, other *actor.PID) bool {
	return one == other || one != nil && other != nil && one.Equal(other)
}

// subscribedByOthers reports whether the server must not be told, because somebody else has
// subscribed to the same.
func (s *settings) subscribedByOthers(op messages.Operation) bool {
	u, ok := op.(*messages.Unsubscribe)
	return ok && slices.ContainsFunc(s.subscriptions, func(s *messages.Subscribe) bool {
		return s.URI == u.URI && !samePID(s.Subscriber, u.Subscriber)
	})
}

// subscribers returns who wants to know that a resource has changed. It may be a
// part of the one that was subscribed to.
func (s *settings) subscribers(uri string) (all []*actor.PID) {
	for _, s := range s.subscriptions {
		if s.Subscriber != nil && (uri == s.URI || strings.HasPrefix(uri, strings.TrimSuffix(s.URI, "/")+"/")) {
			all = append(all, s.Subscriber)
		}
	}
	return all
}

// operations returns the operations that put the rest of it back.
func (s *settings) operations() (ops []messages.Operation) {
	if s.level != nil {
		ops = append(ops, s.level)
	}
	told := map[string]bool{}
	for _, s := range s.subscriptions {
		if !told[s.URI] {
			ops = append(ops, s)
		}
		told[s.URI] = true
	}
	return ops
}

// recordSettings takes in an operation that went well. Who subscribes is watched: a subscriber
// that has stopped is told nothing any more, nor is its subscription put back.
func (s *session) recordSettings(c actor.Context, op messages.Operation) {
	s.settings.record(op)
	subscriber := op.Head().Subscriber
	if subscriber == nil {
		return
	}
	switch op.(type) {
	case *messages.Subscribe:
		c.Watch(subscriber)
	case *messages.Unsubscribe:
		if !s.settings.hasSubscriber(subscriber) {
			c.Unwatch(subscriber)
		}
	}
}

// unwatchSubscribers forgets the subscribers: they keep a note of each session that watches them.
func (s *session) unwatchSubscribers(c actor.Context) {
	for _, subscription := range s.settings.subscriptions {
		if subscription.Subscriber != nil {
			c.Unwatch(subscription.Subscriber)
		}
	}
}
