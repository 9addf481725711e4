package contract

import (
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// Settings are what callers have set on the MCP session: subscriptions, roots and the log
// level. They are set again on the next MCP session.
type Settings struct {
	Roots         *messages.SetRoots // part of the dial
	level         *messages.SetLogLevel
	Subscriptions []*messages.Subscribe
}

// Record adds an operation that has succeeded. It does not change slices that were read before.
func (s *Settings) Record(op messages.Operation) {
	switch op := op.(type) {
	case *messages.SetRoots:
		s.Roots = op
	case *messages.SetLogLevel:
		s.level = op
	case *messages.Subscribe:
		s.remove(op.URI, op.Subscriber)
		s.Subscriptions = append(s.Subscriptions, op)
	case *messages.Unsubscribe:
		s.remove(op.URI, op.Subscriber)
	}
}

// remove removes the subscription of one subscriber.
func (s *Settings) remove(uri string, subscriber *actor.PID) {
	s.Subscriptions = slices.DeleteFunc(slices.Clone(s.Subscriptions), func(s *messages.Subscribe) bool {
		return s.URI == uri && SamePID(s.Subscriber, subscriber)
	})
}

// HasSubscriber reports whether a subscriber has a subscription.
func (s *Settings) HasSubscriber(subscriber *actor.PID) bool {
	return slices.ContainsFunc(s.Subscriptions, func(s *messages.Subscribe) bool { return SamePID(s.Subscriber, subscriber) })
}

// RemoveSubscriber removes all subscriptions of a subscriber, which has stopped.
func (s *Settings) RemoveSubscriber(subscriber *actor.PID) {
	s.Subscriptions = slices.DeleteFunc(slices.Clone(s.Subscriptions), func(s *messages.Subscribe) bool { return SamePID(s.Subscriber, subscriber) })
}

// SamePID reports whether two PIDs are equal. Two nil PIDs are equal.
func SamePID(one, other *actor.PID) bool {
	return one == other || one != nil && other != nil && one.Equal(other)
}

// SubscribedByOthers reports whether an operation unsubscribes from a resource that another
// subscriber has subscribed to: the server then gets no unsubscribe.
func (s *Settings) SubscribedByOthers(op messages.Operation) bool {
	u, ok := op.(*messages.Unsubscribe)
	return ok && slices.ContainsFunc(s.Subscriptions, func(s *messages.Subscribe) bool {
		return s.URI == u.URI && !SamePID(s.Subscriber, u.Subscriber)
	})
}

// Subscribers returns the subscribers of a resource that has changed, and of resources
// that it is a part of.
func (s *Settings) Subscribers(uri string) (all []*actor.PID) {
	for _, s := range s.Subscriptions {
		if s.Subscriber != nil && (uri == s.URI || strings.HasPrefix(uri, strings.TrimSuffix(s.URI, "/")+"/")) {
			all = append(all, s.Subscriber)
		}
	}
	return all
}

// Operations returns the operations that apply the settings, apart from the roots.
func (s *Settings) Operations() (ops []messages.Operation) {
	if s.level != nil {
		ops = append(ops, s.level)
	}
	told := map[string]bool{}
	for _, s := range s.Subscriptions {
		if !told[s.URI] {
			ops = append(ops, s)
		}
		told[s.URI] = true
	}
	return ops
}

// Empty reports whether nothing is set.
func (s *Settings) Empty() bool {
	return s.Roots == nil && s.level == nil && len(s.Subscriptions) == 0
}
