package rpc

import (
	"bytes"
	"strconv"

	sdkjson "github.com/segmentio/encoding/json"
)

// Origin says which request a message answers, by its id.
type Origin uint8

// The origins of a message.
const (
	NoAnswer    Origin = iota // none: it is a request or a notification
	NoMessage                 // none: it is nothing that the SDK can read
	OwnAnswer                 // a request of this connection
	Unnamed                   // an error without an id, as servers send it that have not read the request
	StrayAnswer               // a request of another connection
)

// Answer is what has to be known of a response. Its members are JSON.
type Answer struct {
	Version string             `json:"jsonrpc"`
	ID      rawID              `json:"id"`
	Method  sdkjson.RawMessage `json:"method"`
	Result  sdkjson.RawMessage `json:"result"`
	Error   sdkjson.RawMessage `json:"error"`
}

// rawID is an id as JSON. If the member is there more than once, the last one counts, and the
// SDK has to accept all.
type rawID []byte

// UnmarshalJSON keeps raw.
func (id *rawID) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && (raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9') {
		if _, err := strconv.ParseFloat(string(raw), 64); err != nil {
			return err
		}
	}
	*id = raw
	return nil
}

// Restore replaces the id of a response by the number of the SDK, in place. It decodes the
// data with the library that the SDK decodes it with, and copies none of it.
func (i *IDs) Restore(data []byte) (Answer, Origin) {
	var msg Answer
	rest, err := sdkjson.Parse(data, &msg, sdkjson.ZeroCopy|sdkjson.DontMatchCaseInsensitiveStructFields)
	if string(msg.Error) == "null" {
		msg.Error = nil
	}
	switch {
	case err != nil || len(bytes.TrimSpace(rest)) > 0 || msg.Version != "2.0":
		return msg, NoMessage
	case msg.Method != nil:
		return msg, NoAnswer
	}
	if onWire, ok := integer(msg.ID); ok {
		number, ok := i.own(onWire)
		var digits [20]byte
		text := strconv.AppendInt(digits[:0], number, 10)
		if ok && len(text) <= len(msg.ID) {
			blank(msg.ID[copy(msg.ID, text):])
			return msg, OwnAnswer
		}
	}
	switch string(msg.ID) {
	case "", "null", `""`, `"server-error"`:
		if msg.Error != nil {
			return msg, Unnamed
		}
		return msg, NoMessage
	}
	i.strays.Add(1)
	return msg, StrayAnswer
}

// maxPlain bounds the objects and arrays in a response that is plain. The SDK refuses to
// decode what is nested deeper than that.
const maxPlain = 1000

// IsPlain reports whether a response is a result that the SDK is sure to accept. Most are.
func IsPlain(data []byte, msg Answer) bool {
	return msg.Result != nil && msg.Error == nil &&
		bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) <= maxPlain
}

// blank overwrites data with spaces.
func blank(data []byte) {
	for i := range data {
		data[i] = ' '
	}
}

// integer returns the integer that JSON stands for.
func integer(raw []byte) (int64, bool) {
	number, err := strconv.ParseInt(string(raw), 10, 64)
	if err == nil {
		return number, true
	}
	value, err := strconv.ParseFloat(string(raw), 64) // 4.5e15, as some write it
	return int64(value), err == nil && value > 0 && value < 2*idsRange && float64(int64(value)) == value
}
