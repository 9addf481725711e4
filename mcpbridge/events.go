package mcpbridge

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
)

// eventBuffer holds what came of a stream of events, and was not read yet. What is read
// are whole events: an event that is cut off must not garble the next.
type eventBuffer struct {
	came  []byte // nil if there is nothing, so that a quiet stream has no buffer
	whole int    // how much of that is whole events: the rest may never come
	line  int    // where in it the last line begins
	begun bool   // the first line of the stream has come
	cr    bool   // what came last ends in the middle of a CR LF, or after a CR
}

// eventHandler looks at what came.
type eventHandler interface {
	// onLine is called with each line of an event, with its end.
	onLine(line []byte)
	// onEvent is called with each whole event, and returns what is read of it. It may
	// change the event in place.
	onEvent(event []byte) []byte
}

// take takes in what has come. It returns false when an event is larger than limit.
func (b *eventBuffer) take(data []byte, limit int, h eventHandler) bool {
	for data = b.withNewlines(data); len(data) > 0; {
		n := bytes.IndexByte(data, '\n') + 1
		ended := n > 0
		if !ended {
			n = len(data)
		}
		b.came, data = append(b.came, data[:n]...), data[n:]
		if len(b.came)-b.whole > limit {
			return false
		}
		if !ended {
			continue
		}
		b.completeLine()
		line := b.came[b.line:]
		h.onLine(line)
		b.line = len(b.came)
		if len(bytes.TrimRight(line, "\r\n")) == 0 {
			b.endEvent(h)
		}
	}
	return true
}

// withNewlines returns data whose lines end with LF. The SDK knows no CR alone, by which
// lines may end as well.
func (b *eventBuffer) withNewlines(data []byte) []byte {
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

// completeLine gives the last line the colon that it lacks. A line without one is a field
// without a value (https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream);
// the SDK takes it for the end of the connection. The first line of a stream loses its byte
// order mark.
func (b *eventBuffer) completeLine() {
	if !b.begun {
		b.begun = true
		b.came = append(b.came[:b.line], bytes.TrimPrefix(b.came[b.line:], []byte("\ufeff"))...)
	}
	line := b.came[b.line:]
	text := bytes.TrimRight(line, "\r\n")
	if len(text) > 0 && bytes.IndexByte(text, ':') < 0 {
		b.came = slices.Insert(b.came, b.line+len(text), ':')
	}
}

func (b *eventBuffer) endEvent(h eventHandler) {
	event := h.onEvent(b.came[b.whole:])
	b.came = append(b.came[:b.whole], event...)
	b.whole, b.line = len(b.came), len(b.came)
}

// rest makes what there is of the last event readable: as a whole one, or as it is.
func (b *eventBuffer) rest(whole bool, h eventHandler) {
	if whole && len(b.came) > b.whole {
		b.completeLine()
		b.endEvent(h)
	}
	b.whole = len(b.came)
}

// drop drops what there is of the last event. What comes next is another stream.
func (b *eventBuffer) drop() {
	b.came, b.line = b.came[:b.whole], b.whole
	b.begun, b.cr = false, false
	b.free()
}

// read reads whole events.
func (b *eventBuffer) read(p []byte) int {
	n := copy(p, b.came[:b.whole])
	b.came, b.whole, b.line = b.came[n:], b.whole-n, b.line-n
	b.free()
	return n
}

func (b *eventBuffer) free() {
	if len(b.came) == 0 {
		b.came = nil
	}
}

// nameOf returns the name of an event. One without a name is a message.
func nameOf(event []byte) string {
	name := ""
	for line := range bytes.Lines(event) {
		if bytes.HasPrefix(line, []byte("event:")) {
			_, name = fieldOf(line)
		}
	}
	if name = strings.TrimSpace(name); name == "" {
		return eventMessage
	}
	return name
}

const eventMessage = "message"

// legacyEvents is the body of the one stream of an HTTP+SSE session. Of what it has, the
// SDK reads the name of the endpoint, once, and messages; anything else, such as a sign of
// life, it would take for the end of the session.
type legacyEvents struct {
	io.ReadCloser
	eventBuffer
	limit int
	named bool  // the endpoint is, by the first event with data
	end   error // of the stream
}

// Read reads whole events.
func (l *legacyEvents) Read(p []byte) (int, error) {
	for l.whole == 0 {
		if l.end != nil {
			return 0, l.end
		}
		n, err := l.ReadCloser.Read(p)
		switch {
		case !l.take(p[:n], l.limit, l):
			l.end = errTooLarge
		case err != nil:
			l.end = err
			l.rest(errors.Is(err, io.EOF), l)
		}
	}
	return l.read(p), nil
}

func (l *legacyEvents) onLine([]byte) {}

func (l *legacyEvents) onEvent(event []byte) []byte {
	switch {
	case len(bytes.TrimSpace(dataOf(event))) == 0:
	case !l.named: // if this is not the endpoint, the SDK says so
		l.named = true
		return event
	case nameOf(event) == eventMessage:
		return event
	}
	return nil
}
