package bridge

import (
	"sync"
	"sync/atomic"
)

// skipped is what servers wrote to their stdout that is no message.
type skipped struct {
	bytes  atomic.Uint64
	logged sync.Map // the names of servers that did
}

// note notes some of it, and reports whether it is the first of a server.
func (s *skipped) note(server string, bytes int) (first bool) {
	s.bytes.Add(uint64(bytes))
	_, again := s.logged.LoadOrStore(server, true)
	return !again
}
