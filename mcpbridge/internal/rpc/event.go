package rpc

import (
	"bytes"
	"fmt"
)

// Event is one event of a stream
// (https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream). It
// refers to the data that the stream consists of.
type Event struct {
	Lines     []byte // the whole event
	Name      []byte
	ID, Retry []byte // nil without such a field
	Data      []byte // nil without data
	lines     int    // how many lines the data has
}

// ParseEvent returns the event with these lines.
func ParseEvent(lines []byte) Event {
	e := Event{Lines: lines}
	for line := range bytes.Lines(lines) {
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch string(field) {
		case "event":
			e.Name = value
		case "id":
			e.ID = value
		case "retry":
			e.Retry = value
		case "data":
			switch e.lines++; e.lines {
			case 1:
				e.Data = value
			case 2:
				e.Data = fmt.Appendf(nil, "%s\n%s", e.Data, value)
			default:
				e.Data = append(append(e.Data, '\n'), value...)
			}
		}
	}
	return e
}

// split returns the events in one between whose messages the blank lines are missing, or nil. A message on several lines is no
// message on the first of them.
func (e *Event) split() (parts []Event) {
	if e.lines < 2 {
		return nil
	}
	begin, end, hasData := 0, 0, false
	for line := range bytes.Lines(e.Lines) {
		if data, isData := bytes.CutPrefix(line, []byte("data:")); isData {
			if !isMessage(data) {
				return nil
			}
			if hasData {
				parts = append(parts, ParseEvent(fmt.Appendf(nil, "%s\n", e.Lines[begin:end])))
				begin = end
			}
			hasData = true
		}
		end += len(line)
	}
	return append(parts, ParseEvent(bytes.Clone(e.Lines[begin:])))
}

// IsMessage reports whether the name of the event is that of JSON-RPC messages, or empty. The SDK reads no other events.
func (e *Event) IsMessage() bool { return len(e.Name) == 0 || string(e.Name) == "message" }

// With returns the lines of the event with other data, or with nil without data. Data that was changed in place
// already is part of the lines.
func (e *Event) With(data []byte) []byte {
	if e.lines == 1 && len(data) > 0 && len(e.Data) > 0 && &data[0] == &e.Data[0] {
		return e.Lines
	}
	var with []byte
	if data != nil {
		with = fmt.Appendf(with, "data: %s\n", bytes.ReplaceAll(data, []byte("\n"), []byte("\ndata: ")))
	}
	for line := range bytes.Lines(e.Lines) {
		if field, _, _ := bytes.Cut(line, []byte(":")); string(field) != "data" {
			with = append(with, line...)
		}
	}
	return with
}
