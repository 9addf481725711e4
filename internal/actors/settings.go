package actors

import (
	"slices"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"github.com/mcpactor/mcpactor/messages"
)

// settings are what callers have set on the MCP session: subscriptions, roots and the log
// level. They are set again on the next MCP session.
type settings struct {
	roots         *messages.SetRoots // part of the dial
	level         *messages.SetLogLevel
	subscriptions []*messages.Subscribe
}

// record adds an operation that has succeeded. The slices that it returned before do not
// change.
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

// remove removes the subscription of one subscriber.
func (s *settings) remove(uri string, subscriber *actor.PID) {
	s.subscriptions = slices.DeleteFunc(slices.Clone(s.subscriptions), func(s *messages.Subscribe) bool {
		return s.URI == uri && samePID(s.Subscriber, subscriber)
	})
}

// hasSubscriber reports whether a subscriber has a subscription.
func (s *settings) hasSubscriber(subscriber *actor.PID) bool {
	return slices.ContainsFunc(s.subscriptions, func(s *messages.Subscribe) bool { return samePID(s.Subscriber, subscriber) })
}

// removeSubscriber removes all subscriptions of a subscriber, which has stopped.
func (s *settings) removeSubscriber(subscriber *actor.PID) {
	s.subscriptions = slices.DeleteFunc(slices.Clone(s.subscriptions), func(s *messages.Subscribe) bool { return samePID(s.Subscriber, subscriber) })
}

// samePID reports whether two PIDs are equal. Two nil PIDs are equal.
func samePID(one, other *actor.PID) bool {
	return one == other || one != nil && other != nil && one.Equal(other)
}

// subscribedByOthers reports whether an operation unsubscribes from a resource that another
// subscriber has subscribed to: the server then gets no unsubscribe.
func (s *settings) subscribedByOthers(op messages.Operation) bool {
	u, ok := op.(*messages.Unsubscribe)
	return ok && slices.ContainsFunc(s.subscriptions, func(s *messages.Subscribe) bool {
		return s.URI == u.URI && !samePID(s.Subscriber, u.Subscriber)
	})
}

// subscribers returns the subscribers of a resource that has changed, and of resources
// that it is a part of.
func (s *settings) subscribers(uri string) (all []*actor.PID) {
	for _, s := range s.subscriptions {
		if s.Subscriber != nil && (uri == s.URI || strings.HasPrefix(uri, strings.TrimSuffix(s.URI, "/")+"/")) {
			all = append(all, s.Subscriber)
		}
	}
	return all
}

// operations returns the operations that apply the settings, apart from the roots.
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

// empty reports whether nothing is set.
func (s *settings) empty() bool {
	return s.roots == nil && s.level == nil && len(s.subscriptions) == 0
}
