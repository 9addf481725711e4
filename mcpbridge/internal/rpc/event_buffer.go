package rpc

import (
	"bytes"
	"slices"
)

// EventBuffer holds the unread part of a stream of events. It is read by whole events, so that an event that is cut
// off does not garble the next.
type EventBuffer struct {
	// Skips is how much more of an event over the limit is skipped, in bytes. At a longer one, Feed fails. 0 is 1 GiB.
	Skips int

	came  []byte     // the unread part; nil if that is empty, so that a quiet stream has no buffer
	whole int        // how much of it is whole events
	line  int        // the offset of the last line
	begun bool       // the first line of the stream has come
	cr    bool       // the last data ended with a CR, to which an LF may belong
	large *oversized // the event over the limit that is skipped; nil for none
}

// EventHandler handles the events of a stream.
type EventHandler interface {
	// OnEvent is called with each whole event, and returns the lines that are read in its
	// place. It may change the event in place, and does not keep it.
	OnEvent(Event) []byte
	// OnLarge is called with each event over the limit, which is skipped, and returns the lines
	// that are read in its place, or nothing.
	OnLarge(Large) []byte
}

// Feed adds data of the stream. It returns false at an event over the limit that is too large to be skipped.
func (b *EventBuffer) Feed(data []byte, limit int, h EventHandler) bool {
	for data = b.withLF(data); len(data) > 0; {
		n := bytes.IndexByte(data, '\n') + 1
		ended := n > 0
		if !ended {
			n = len(data)
		}
		if b.large != nil {
			if !b.skip(data[:n], limit, h) {
				return false
			}
			data = data[n:]
			continue
		}
		if cap(b.came)-len(b.came) < n {
			b.came = slices.Grow(b.came, max(n, len(b.came)))
		}
		b.came, data = append(b.came, data[:n]...), data[n:]
		if len(b.came)-b.whole > limit {
			if !b.oversize(limit, h) {
				return false
			}
			continue
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

// withLF returns data whose lines end with LF. In a stream they may also end with CR LF or with CR, which the
// SDK does not support.
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

// completeLine adds a colon to the last line if it has none, and removes the byte order mark from the
// first line of a stream. A line without a colon is a field without a value
// (https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream). The
// SDK would end the connection after it.
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
	event := ParseEvent(b.came[b.whole:])
	if parts := event.split(); parts != nil {
		b.came = b.came[:b.whole]
		for _, part := range parts {
			b.came = append(b.came, h.OnEvent(part)...)
		}
	} else {
		b.came = append(b.came[:b.whole], h.OnEvent(event)...)
	}
	b.whole, b.line = len(b.came), len(b.came)
}

// EndEvent ends the incomplete last event, as a blank line does.
func (b *EventBuffer) EndEvent(limit int, h EventHandler) {
	end := "\n\n"
	if b.line == len(b.came) {
		end = "\n"
	}
	b.cr = false
	b.Feed([]byte(end), limit, h)
}

// oversize begins to skip the incomplete event. It returns false if the event does not end.
func (b *EventBuffer) oversize(limit int, h EventHandler) bool {
	before, last := b.came[b.whole:b.line], b.came[b.line:]
	b.came, b.line = slices.Clip(b.came[:b.whole]), b.whole // what is read instead does not overwrite them
	b.free()
	b.begun, b.large = true, new(oversized)
	return (len(before) == 0 || b.skip(before, limit, h)) && b.skip(last, limit, h)
}

// skip skips lines of an event over the limit, or a part of one. It returns false if the event does not end.
func (b *EventBuffer) skip(line []byte, limit int, h EventHandler) bool {
	about, isTold, isEnd := b.large.add(line)
	endless := isEndless(b.large.size, limit, b.Skips)
	if isTold {
		b.replace(about, h)
	}
	if isEnd {
		b.large = nil
	}
	return !endless
}

// replace adds the event that is read in place of one over the limit.
func (b *EventBuffer) replace(about Large, h EventHandler) {
	b.came = append(b.came[:b.whole], h.OnLarge(about)...)
	b.whole, b.line = len(b.came), len(b.came)
}

// Finish makes an incomplete last event readable: as a whole event, or as it is.
func (b *EventBuffer) Finish(whole bool, h EventHandler) {
	if whole && b.large != nil {
		if about, isTold := b.large.tell(true); isTold {
			b.replace(about, h)
		}
	}
	if whole && len(b.came) > b.whole {
		b.completeLine()
		b.endEvent(h)
	}
	b.whole = len(b.came)
}

// Ready reports whether there is a whole event to be read.
func (b *EventBuffer) Ready() bool { return b.whole > 0 }

// Empty reports whether nothing is unread, so that there is no buffer.
func (b *EventBuffer) Empty() bool { return len(b.came) == 0 }

// Partial returns the whole lines of an incomplete last event.
func (b *EventBuffer) Partial() Event { return ParseEvent(b.came[b.whole:b.line]) }

// Unfinished returns the incomplete last event, with an incomplete last line.
func (b *EventBuffer) Unfinished() Event { return ParseEvent(b.came[b.whole:]) }

// unfinishedTail bounds how much of an incomplete event MayHoldMessage looks at.
const unfinishedTail = 1 << 10

// MayHoldMessage reports whether the incomplete last event may have all of a message: it ends with a bracket, or has lines
// after one.
func (b *EventBuffer) MayHoldMessage() bool {
	tail := b.came[max(b.whole, len(b.came)-unfinishedTail):]
	return bytes.HasSuffix(tail, []byte("}")) || b.line == len(b.came) && bytes.IndexByte(tail, '}') >= 0
}

// HoldsMessage reports whether the incomplete last event has all of a message.
func (b *EventBuffer) HoldsMessage() bool {
	e := b.Unfinished()
	if !e.IsMessage() || !bytes.HasSuffix(e.Data, []byte("}")) {
		return false
	}
	_, err := Decode(e.Data)
	return err == nil || UnnamedError(e.Data) != nil
}

// DropPartial drops an incomplete last event. The next data begins another stream.
func (b *EventBuffer) DropPartial() {
	b.came, b.line = b.came[:b.whole], b.whole
	b.begun, b.cr, b.large = false, false, nil
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
