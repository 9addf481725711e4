// Package stderr passes the lines of processes on to the writers of [mcpbridge.Server].Stderr. A writer that blocks
// delays no process and no session.
package stderr

import (
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/internal/relay"
	"github.com/mcpactor/mcpactor/messages"
)

// maxLines bounds the lines of a key that wait for its writer. When it is reached, all of them are dropped, so that
// the latest lines stay.
const maxLines = 256

// Writers has a [Writer] for each key that has a process, or lines that wait.
type Writers struct {
	panicked func(server string, p *guard.Panic)

	mu  sync.Mutex
	all map[messages.Key]*Writer
}

// New returns Writers that call panicked when code of the user has panicked.
func New(panicked func(server string, p *guard.Panic)) *Writers {
	return &Writers{panicked: panicked, all: map[messages.Key]*Writer{}}
}

// Open returns the Writer of a key for one more process. The caller calls Close when the process has ended. A new Writer
// calls ask before it writes its first line.
func (ws *Writers) Open(key messages.Key, ask func(messages.Key) io.Writer) *Writer {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w := ws.all[key]
	if w == nil {
		w = &Writer{of: ws, key: key, ask: ask}
		w.wake = relay.New(1, w.writeAll, nil, nil)
		ws.all[key] = w
	}
	w.processes++
	return w
}

// Writer writes the lines of the processes of a key, one after the other, in a goroutine of its own, which runs while
// lines wait. A nil Writer does nothing. The methods may be called from any goroutine, and do not block.
type Writer struct {
	of   *Writers
	key  messages.Key
	ask  func(messages.Key) io.Writer // nil when it was called
	to   io.Writer                    // what ask has returned; only the goroutine that writes uses both
	wake *relay.Relay[struct{}]       // calls writeAll

	// These are guarded by of.mu.
	processes int
	waiting   []func() string
	dropped   int // lines before those that wait
}

// Put adds a line of a process that is not closed, without its end. line is called later, or not at all.
func (w *Writer) Put(line func() string) {
	if w == nil {
		return
	}
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	if w.processes == 0 {
		return
	}
	if len(w.waiting) == maxLines {
		w.dropped, w.waiting = w.dropped+maxLines, nil
	}
	w.waiting = append(w.waiting, line)
	w.wake.Put(struct{}{})
}

// Close notes that a process has ended.
func (w *Writer) Close() {
	if w == nil {
		return
	}
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	w.processes--
	w.wake.Put(struct{}{})
}

// writeAll writes the lines that wait.
func (w *Writer) writeAll(struct{}) {
	for line := w.next(); line != nil; line = w.next() {
		_, err := guard.Call(func() (int, error) {
			if ask := w.ask; ask != nil {
				w.ask, w.to = nil, io.Discard
				if to := ask(w.key); to != nil {
					w.to = to
				}
			}
			return w.to.Write([]byte(line() + "\n"))
		})
		var p *guard.Panic
		if errors.As(err, &p) {
			w.of.panicked(w.key.Server, p)
		}
	}
}

// next removes the first line, or returns nil if there is none. A Writer without lines and processes is forgotten.
func (w *Writer) next() (line func() string) {
	w.of.mu.Lock()
	defer w.of.mu.Unlock()
	switch n := w.dropped; {
	case n > 0:
		w.dropped = 0
		return func() string { return fmt.Sprintf("… %d lines were dropped", n) }
	case len(w.waiting) > 0:
		line, w.waiting = w.waiting[0], w.waiting[1:]
	case w.processes == 0 && w.of.all[w.key] == w:
		delete(w.of.all, w.key)
	}
	return line
}
