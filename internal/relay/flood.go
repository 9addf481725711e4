package relay

import (
	"time"

	"github.com/rs/zerolog"
)

const (
	// floodLines is how many equal lines are written in floodWindow. Further ones are counted.
	floodLines  = 100
	floodWindow = 10 * time.Second
	// maxKinds bounds the kinds that are remembered. Lines of further kinds are written.
	maxKinds = 1024
)

// kind is what equal lines have in common. Their other fields may differ.
type kind struct {
	level        zerolog.Level
	text, server string
}

// flood counts the lines of a kind in a window, which begins with the first of them.
type flood struct {
	began time.Time
	last  time.Time // when the last line came
	lines int
	timer *time.Timer // ends the window; nil while all lines are written
}

// passes reports whether a line is written. Lines below Info are: who switches them on wants
// all.
func (l *Logger) passes(k kind, at time.Time) bool {
	if k.level < zerolog.InfoLevel {
		return true
	}
	f := l.floods[k]
	if f != nil && at.Sub(f.began) >= floodWindow {
		l.sumUp(k, f)
		f = nil
	}
	if f == nil {
		if !l.hasRoom(at) {
			return true
		}
		f = &flood{began: at}
		l.floods[k] = f
	}
	f.last = at
	if f.lines++; f.lines <= floodLines {
		return true
	}
	if f.timer == nil {
		f.timer = l.sumUpIn(floodWindow-at.Sub(f.began), k, f)
	}
	return false
}

// sumUpIn ends a window after a time, and later if the queue is full then.
func (l *Logger) sumUpIn(wait time.Duration, k kind, f *flood) *time.Timer {
	return time.AfterFunc(wait, func() {
		if !l.lines.Put(line{do: func() { l.sumUp(k, f) }}) {
			l.sumUpIn(floodWindow, k, f)
		}
	})
}

// hasRoom reports whether another kind can be remembered. It forgets those whose window is
// over.
func (l *Logger) hasRoom(now time.Time) bool {
	if len(l.floods) < maxKinds {
		return true
	}
	for k, f := range l.floods {
		if f.timer == nil && now.Sub(f.began) >= floodWindow {
			delete(l.floods, k)
		}
	}
	return len(l.floods) < maxKinds
}

// sumUp ends a window. If not all of its lines were written, it says how many were not, and in
// which time all came.
func (l *Logger) sumUp(k kind, f *flood) {
	if l.floods[k] != f {
		return // it has been summed up
	}
	delete(l.floods, k)
	if f.timer == nil {
		return
	}
	f.timer.Stop()
	e := l.behind.WithLevel(k.level)
	if k.server != "" {
		e.Str("server", k.server)
	}
	e.Int("repeated", f.lines-floodLines).Stringer("elapsed", f.last.Sub(f.began)).Msg(k.text)
}

// sumUpAll ends all windows.
func (l *Logger) sumUpAll() {
	for k, f := range l.floods {
		l.sumUp(k, f)
	}
}
