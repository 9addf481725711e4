package rpc

import (
	"bytes"
	"slices"
)

// EventBuffer holds what came of a stream of events and was not read yet. Only whole events
// are read: an event that is cut off must not garble the next.
type EventBuffer struct {
	came  []byte // nil if there is nothing, so that a quiet stream has no buffer
	whole int    // how much of it is whole events: the rest of the last event may never come
	line  int    // the offset of the last line
	begun bool   // the first line of the stream has come
	cr    bool   // the data fed last ends with a CR, to which an LF may belong
}

// EventHandler looks at what came.
type EventHandler interface {
	// OnEvent is called with each whole event, and returns the lines that are read in its
	// place. It may change the event in place, and does not keep it.
	OnEvent(Event) []byte
}

// Feed adds what has come. It returns false when an event exceeds limit.
func (b *EventBuffer) Feed(data []byte, limit int, h EventHandler) bool {
	for data = b.withLF(data); len(data) > 0; {
		n := bytes.IndexByte(data, '\n') + 1
		ended := n > 0
		if !ended {
			n = len(data)
		}
		if cap(b.came)-len(b.came) < n {
			b.came = slices.Grow(b.came, max(n, len(b.came)))
		}
		b.came, data = append(b.came, data[:n]...), data[n:]
		if len(b.came)-b.whole > limit {
			return false
		}
		if !ended {
			continue
		}
		b.completeLine()
		isEnd := len(bytes.TrimRight(b.came[b.line:], "\r\n")) == 0
		b.line = len(b.came)
		if isEnd {
			b.endEvent(h)
		}
	}
	return true
}

// withLF returns data whose lines end with LF. Lines may also end with CR LF or with CR, which the
// SDK does not know.
func (b *EventBuffer) withLF(data []byte) []byte {
	if len(data) == 0 || !b.cr && bytes.IndexByte(data, '\r') < 0 {
		return data
	}
	if b.cr && data[0] == '\n' {
		data = data[1:]
	}
	b.cr = bytes.HasSuffix(data, []byte("\r"))
	data = bytes.ReplaceAll(data, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(data, []byte("\r"), []byte("\n"))
}

// completeLine adds the colon that the last line lacks, and removes the byte order mark from the
// first line of a stream. A line without a colon is a field without a value
// (https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream); the
// SDK takes it for the end of the connection.
func (b *EventBuffer) completeLine() {
	if !b.begun {
		b.begun = true
		b.came = append(b.came[:b.line], bytes.TrimPrefix(b.came[b.line:], []byte(byteOrderMark))...)
	}
	line := b.came[b.line:]
	text := bytes.TrimRight(line, "\r\n")
	if len(text) > 0 && bytes.IndexByte(text, ':') < 0 {
		b.came = slices.Insert(b.came, b.line+len(text), ':')
	}
}

func (b *EventBuffer) endEvent(h EventHandler) {
	event := h.OnEvent(ParseEvent(b.came[b.whole:]))
	b.came = append(b.came[:b.whole], event...)
	b.whole, b.line = len(b.came), len(b.came)
}

// Finish makes the rest of the last event readable: as a whole event, or as it is.
func (b *EventBuffer) Finish(whole bool, h EventHandler) {
	if whole && len(b.came) > b.whole {
		b.completeLine()
		b.endEvent(h)
	}
	b.whole = len(b.came)
}

// Ready reports whether there is a whole event to be read.
func (b *EventBuffer) Ready() bool { return b.whole > 0 }

// Empty reports whether nothing has come, so that there is no buffer.
func (b *EventBuffer) Empty() bool { return len(b.came) == 0 }

// Partial returns the whole lines of the last event.
func (b *EventBuffer) Partial() Event { return ParseEvent(b.came[b.whole:b.line]) }

// DropPartial drops the rest of the last event. What is fed next is another stream.
func (b *EventBuffer) DropPartial() {
	b.came, b.line = b.came[:b.whole], b.whole
	b.begun, b.cr = false, false
	b.free()
}

// Next reads whole events.
func (b *EventBuffer) Next(p []byte) int {
	n := copy(p, b.came[:b.whole])
	b.came, b.whole, b.line = b.came[n:], b.whole-n, b.line-n
	b.free()
	return n
}

func (b *EventBuffer) free() {
	if len(b.came) == 0 {
		b.came = nil
	}
}
