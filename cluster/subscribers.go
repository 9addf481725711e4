package cluster

import (
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// maxEvents bounds the events that are queued for slow handles.
const maxEvents = 1 << 14

// subscribers have their handles called in one goroutine, one after the other. A goroutine and a
// queue for each would take much longer with thousands, such as one for each conversation.
type subscribers struct {
	watch func(put func(messages.Event)) (end func()) // brings the events of all members until end is called
	queue *clusterapi.Relay[messages.Event]
	log   zerolog.Logger

	mu  sync.Mutex
	all []*subscriber // read-only once set, because it is read while it is replaced
	end func()        // nil without subscribers
}

// subscriber is one call of [Member.Subscribe].
type subscriber struct {
	handle   func(messages.Event)
	canceled atomic.Bool
}

func newSubscribers(log zerolog.Logger, watch func(put func(messages.Event)) (end func())) *subscribers {
	s := &subscribers{watch: watch, log: log}
	s.queue = clusterapi.NewRelay(maxEvents, s.deliver, func(n uint64) {
		log.Warn().Uint64("events", n).Msg("events of the cluster were dropped, because their handlers were too slow")
	}, nil)
	return s
}

// add has handle called until cancel is called.
func (s *subscribers) add(handle func(messages.Event)) (cancel func()) {
	one := &subscriber{handle: handle}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(slices.Clip(s.all), one)
	if s.end == nil {
		s.end = s.watch(func(e messages.Event) { s.queue.Put(e) })
	}
	return func() { s.remove(one) }
}

// remove removes a subscriber. A second time does nothing.
func (s *subscribers) remove(one *subscriber) {
	if one.canceled.Swap(true) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = slices.DeleteFunc(slices.Clone(s.all), func(other *subscriber) bool { return other == one })
	if len(s.all) == 0 {
		s.end()
		s.end = nil
	}
}

// deliver calls all handles.
func (s *subscribers) deliver(e messages.Event) {
	s.mu.Lock()
	all := s.all
	s.mu.Unlock()
	for _, one := range all {
		s.call(one, e)
	}
}

// call calls a handle. One that panics does so alone.
func (s *subscribers) call(one *subscriber, e messages.Event) {
	defer func() {
		if reason := recover(); reason != nil {
			s.log.Error().Type("event", e).Interface("reason", reason).Bytes("stack", debug.Stack()).Msg("event handler panicked")
		}
	}()
	if !one.canceled.Load() {
		one.handle(e)
	}
}
