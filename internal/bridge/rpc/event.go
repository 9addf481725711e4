package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// content is what an event has for the call that its stream answers.
type Content uint8

const (
	Other Content = iota
	Result
	Failed      // an answer without a result
	NotAMessage // no message
)

// singleData returns the data of an event if it stands in one line.
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

// dataOf returns the data of an event.
func DataOf(event []byte) (data []byte) {
	for line := range bytes.Lines(event) {
		if field, value := FieldOf(line); field == "data" {
			data = append(data, value...)
		}
	}
	return data
}

// withData returns an event with other data; nil is none.
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

// fieldOf splits a line of an event stream.
func FieldOf(line []byte) (field, value string) {
	name, rest, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(":"))
	return string(name), string(bytes.TrimPrefix(rest, []byte(" ")))
}

// restoreEvent does what restore does with the data of an event, in place where that
// can be. One that answers another connection loses its data, and keeps its id: the
// stream is resumed after it. An error without an id gets that of the call which the
// stream answers, where there is one.
func (i *IDs) RestoreEvent(event []byte, call json.RawMessage) (restored []byte, what Content) {
	data, single := singleData(event)
	if !single {
		data = DataOf(event)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return event, Other
	}
	msg, from := i.Restore(data)
	what = Result
	if msg.Result == nil || msg.Error != nil {
		what = Failed
	}
	switch {
	case from == NoAnswer:
		return event, Other
	case from == NoMessage && HasID(call):
		return event, NotAMessage
	case from == NoMessage:
		return event, Other
	case from == OwnAnswer && single:
		return event, what
	case from == OwnAnswer:
		return WithData(event, data), what
	case from == Unnamed && HasID(call):
		return WithData(event, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, call, msg.Error)), Failed
	}
	return WithData(event, nil), Other
}
