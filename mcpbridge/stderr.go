package mcpbridge

import "sync"

const (
	// maxStderrLines bounds the lines that a [Stderr] holds.
	maxStderrLines = 64
	// MaxStderrLine is the length from which a line of stderr is cut, in bytes.
	MaxStderrLine = 4 << 10
)

// Stderr passes on the lines that a server writes to stderr. It holds up to 64 lines;
// further ones are counted and dropped, so that the server never waits. While nobody
// follows, it holds none. The zero value is ready for use. Its methods may be called from
// any goroutine, and on a nil pointer.
type Stderr struct {
	mu      sync.Mutex
	ready   func() // nil while nobody follows
	lines   []StderrLine
	dropped uint64 // since the last line
}

// StderrLine is a line of a [Stderr].
type StderrLine struct {
	Text    string
	Dropped uint64 // how many lines before this one were dropped
}

// Follow has ready called whenever there are lines after there were none. ready must not
// block. With nil, nobody follows any more, and all lines are dropped.
func (s *Stderr) Follow(ready func()) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready, s.lines, s.dropped = ready, nil, 0
}

// Followed reports whether anybody follows.
func (s *Stderr) Followed() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ready != nil
}

// Put adds a line, without secrets and at most [MaxStderrLine] long. line is called only
// if there is room.
func (s *Stderr) Put(line func() string) {
	if s == nil || !s.hasRoom() {
		return
	}
	text := line()
	s.mu.Lock()
	s.lines, s.dropped = append(s.lines, StderrLine{text, s.dropped}), 0
	ready, first := s.ready, len(s.lines) == 1
	if ready == nil {
		s.lines = nil
	}
	s.mu.Unlock()
	if first && ready != nil {
		ready()
	}
}

// hasRoom reports whether a line can be added, and counts it as dropped if not.
func (s *Stderr) hasRoom() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ready == nil {
		return false
	}
	if len(s.lines) >= maxStderrLines {
		s.dropped++
		return false
	}
	return true
}

// Take removes the first lines, at most the given number.
func (s *Stderr) Take(most int) []StderrLine {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(most, len(s.lines))
	lines := s.lines[:n:n]
	s.lines = s.lines[n:]
	if len(s.lines) == 0 {
		s.lines = nil
	}
	return lines
}
