package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Content is what an event contains for the call that its stream answers.
type Content uint8

// The contents of an event.
const (
	ContentOther Content = iota
	ContentResult
	ContentError    // a response without a result
	ContentNonsense // no JSON-RPC message
)

// IsMessage reports whether an event has the name of those with a JSON-RPC message, which is also the name of
// events without one. The SDK reads no others.
func IsMessage(event []byte) bool {
	name := ""
	for line := range bytes.Lines(event) {
		if bytes.HasPrefix(line, []byte("event:")) {
			_, name = FieldOf(line)
		}
	}
	name = strings.TrimSpace(name)
	return name == "" || name == "message"
}

// HasData reports whether an event has data.
func HasData(event []byte) bool {
	return bytes.HasPrefix(event, []byte("data:")) || bytes.Contains(event, []byte("\ndata:"))
}

// singleData returns the data of an event if it is on one line.
func singleData(event []byte) (data []byte, ok bool) {
	for line := range bytes.Lines(event) {
		rest, isData := bytes.CutPrefix(line, []byte("data:"))
		switch {
		case !isData:
		case data != nil:
			return nil, false
		default:
			data = rest
		}
	}
	return data, data != nil
}

// DataOf returns the data of an event.
func DataOf(event []byte) (data []byte) {
	for line := range bytes.Lines(event) {
		if field, value := FieldOf(line); field == "data" {
			data = append(data, value...)
		}
	}
	return data
}

// WithData returns an event with other data; nil is none.
func WithData(event, data []byte) []byte {
	var with []byte
	if data != nil {
		with = fmt.Appendf(with, "data: %s\n", data)
	}
	for line := range bytes.Lines(event) {
		if field, _ := FieldOf(line); field != "data" {
			with = append(with, line...)
		}
	}
	return with
}

// FieldOf splits a line of an event stream.
func FieldOf(line []byte) (field, value string) {
	name, rest, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(":"))
	return string(name), string(bytes.TrimPrefix(rest, []byte(" ")))
}

// RestoreEvent does what [IDs.Restore] does with the data of an event, in place where possible.
// An event with a response to a request of another connection loses its data, and keeps its id,
// so that the stream is resumed after it. An error without an id gets the id of the call that
// the stream answers, if there is one.
func (i *IDs) RestoreEvent(event []byte, call json.RawMessage) (restored []byte, what Content) {
	data, single := singleData(event)
	if !single {
		data = DataOf(event)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return event, ContentOther
	}
	msg, from := i.Restore(data)
	what = ContentResult
	if msg.Result == nil || msg.Error != nil {
		what = ContentError
	}
	switch {
	case from == NoAnswer:
		return event, ContentOther
	case from == NoMessage && HasID(call):
		return event, ContentNonsense
	case from == NoMessage:
		return event, ContentOther
	case from == OwnAnswer && single:
		return event, what
	case from == OwnAnswer:
		return WithData(event, data), what
	case from == Unnamed && HasID(call):
		return WithData(event, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, call, msg.Error)), ContentError
	}
	return WithData(event, nil), ContentOther
}
