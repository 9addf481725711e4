package cluster

import (
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/eventstream"
	"github.com/rs/zerolog"

	"github.com/mcpactor/mcpactor/internal/clusterapi"
	"github.com/mcpactor/mcpactor/messages"
)

// maxEvents bounds the events that are queued for slow handles.
const maxEvents = 1 << 14

// subscribers have their handles called in one goroutine, one after the other. A goroutine and a
// queue for each would take much longer with thousands, such as one for each conversation.
type subscribers struct {
	watch  func(put func(messages.Event)) (end func()) // brings the events of all members until end is called
	queue  *clusterapi.Relay[messages.Event]
	stream *eventstream.EventStream
	log    zerolog.Logger

	mu  sync.Mutex
	end func() // nil without subscribers
}

func newSubscribers(log zerolog.Logger, watch func(put func(messages.Event)) (end func())) *subscribers {
	s := &subscribers{watch: watch, stream: eventstream.NewEventStream(), log: log}
	s.queue = clusterapi.NewRelay(maxEvents, func(e messages.Event) { s.stream.Publish(e) }, func(n uint64) {
		log.Warn().Uint64("events", n).Msg("events of the cluster were dropped, because their handlers were too slow")
	}, nil)
	return s
}

// add has handle called until cancel is called. A second time, that does nothing.
func (s *subscribers) add(handle func(messages.Event)) (cancel func()) {
	var canceled atomic.Bool
	s.mu.Lock()
	defer s.mu.Unlock()
	subscription := s.stream.Subscribe(func(event any) {
		if !canceled.Load() {
			s.call(handle, event.(messages.Event))
		}
	})
	if s.end == nil {
		s.end = s.watch(func(e messages.Event) { s.queue.Put(e) })
	}
	return sync.OnceFunc(func() {
		canceled.Store(true)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.stream.Unsubscribe(subscription); s.stream.Length() == 0 {
			s.end()
			s.end = nil
		}
	})
}

// call calls a handle. One that panics does so alone.
func (s *subscribers) call(handle func(messages.Event), e messages.Event) {
	defer func() {
		if reason := recover(); reason != nil {
			s.log.Error().Type("event", e).Interface("reason", reason).Bytes("stack", debug.Stack()).Msg("event handler panicked")
		}
	}()
	handle(e)
}
