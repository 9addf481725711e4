package wire

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// maxLinger is how long the stream with a response may stay open after the response.
const maxLinger = time.Second

// responseStreams are the event streams that are open for the responses to one operation.
type responseStreams struct {
	mu      sync.Mutex
	open    int
	lingers *atomic.Bool // of the server: see StreamOpened; set while open > 0
	release func()       // called when the last stream ends; nil before Finish
}

// StreamOpened notes that a stream is read for the response. lingers is true of servers that leave such
// streams open after the response.
func (s *responseStreams) StreamOpened(lingers *atomic.Bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open++
	s.lingers = lingers
}

// StreamClosed notes that the stream was closed.
func (s *responseStreams) StreamClosed() {
	s.mu.Lock()
	s.open--
	release := s.release
	last := s.open == 0 && release != nil
	s.mu.Unlock()
	if last {
		release()
	}
}

// Finish cancels what an operation has left behind. After a success, it first lets the stream with the
// response end by itself, for maxLinger, because cancelling it closes its HTTP connection. A server whose
// stream does not end then is noted in lingers: its later streams are cancelled at once, since they
// would accumulate.
func (s *responseStreams) Finish(succeeded bool, cancel context.CancelFunc) {
	s.mu.Lock()
	wait := succeeded && s.open > 0 && !s.lingers.Load()
	if wait {
		timer := time.AfterFunc(maxLinger, func() { s.lingers.Store(true); cancel() })
		s.release = func() { timer.Stop(); cancel() }
	}
	s.mu.Unlock()
	if !wait {
		cancel()
	}
}
