package mcpbridge

import "sync"

// maxStderrLines bounds the lines that a [Stderr] holds.
const maxStderrLines = 64

// Stderr passes on the lines that a server writes to stderr. It holds up to 64 lines. When it is full, each new
// line replaces the last one, and is counted, so that the server never waits. While nobody follows, it holds
// none. The zero value is ready for use. Its methods may be called from any goroutine, and on a nil pointer.
type Stderr struct {
	mu    sync.Mutex
	ready func() // nil while nobody follows
	lines []stderrLine
}

// stderrLine is a line in a [Stderr].
type stderrLine struct {
	StderrLine
	text func() string // returns Text; nil if Text is known
}

// StderrLine is a line of a [Stderr].
type StderrLine struct {
	Text    string
	Dropped uint64 // how many lines before this one were dropped
}

// Follow makes s call ready when there are lines after there were none. ready must not
// block. Follow(nil) ends that, and drops all lines.
func (s *Stderr) Follow(ready func()) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready, s.lines = ready, nil
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

// Put adds a line. line returns the line, without secrets and at most 4 KiB long. It is called later, or
// not at all, if there is no room.
func (s *Stderr) Put(line func() string) {
	if s == nil || !s.hasRoom(line) {
		return
	}
	text := line()
	s.mu.Lock()
	s.lines = append(s.lines, stderrLine{StderrLine: StderrLine{Text: text}})
	ready, first := s.ready, len(s.lines) == 1
	if ready == nil {
		s.lines = nil
	}
	s.mu.Unlock()
	if first && ready != nil {
		ready()
	}
}

// hasRoom reports whether a line can be added. If s is full, the line replaces the last one.
func (s *Stderr) hasRoom(line func() string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.lines)
	switch {
	case s.ready == nil:
		return false
	case n < maxStderrLines:
		return true
	}
	s.lines[n-1] = stderrLine{StderrLine{Dropped: s.lines[n-1].Dropped + 1}, line}
	return false
}

// Take removes the first lines, at most the given number.
func (s *Stderr) Take(most int) (lines []StderrLine) {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(most, len(s.lines))
	for _, line := range s.lines[:n] {
		if line.text != nil {
			line.Text = line.text()
		}
		lines = append(lines, line.StderrLine)
	}
	if s.lines = s.lines[n:]; len(s.lines) == 0 {
		s.lines = nil
	}
	return lines
}
