package rpc

import (
	"bytes"
	"strconv"

	sdkjson "github.com/segmentio/encoding/json"
)

// origin says whose an answer is, by its id.
type Origin uint8

const (
	NoAnswer    Origin = iota // it is a request or a notification
	NoMessage                 // it is nothing that the SDK can read
	OwnAnswer                 // to a request of this connection
	Unnamed                   // an error without an id, as servers make them that have not read the request
	StrayAnswer               // to a request of another connection
)

// answerHead is what has to be known of an answer.
type answerHead struct {
	Version string             `json:"jsonrpc"`
	ID      rawID              `json:"id"`
	Method  sdkjson.RawMessage `json:"method"`
	Result  sdkjson.RawMessage `json:"result"`
	Error   sdkjson.RawMessage `json:"error"`
}

// rawID is the JSON of an id, as a part of what is decoded. If the name stands there
// more than once it is the last, and all have to be what the SDK takes.
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

// restore puts the number of the SDK in the place of the id of an answer, in place. The
// data is decoded by the library that the SDK decodes with, without copying any of it.
func (i *IDs) Restore(data []byte) (answerHead, Origin) {
	var msg answerHead
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

// maxPlain bounds the objects and arrays of an answer that is plain. The SDK refuses to
// decode what is nested deeper than that.
const maxPlain = 1000

// isPlain reports whether an answer is a result that the SDK is sure to take. Most are.
func IsPlain(data []byte, msg answerHead) bool {
	return msg.Result != nil && msg.Error == nil &&
		bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) <= maxPlain
}

func blank(data []byte) {
	for i := range data {
		data[i] = ' '
	}
}

// integer returns the integer that JSON is.
func integer(raw []byte) (int64, bool) {
	number, err := strconv.ParseInt(string(raw), 10, 64)
	if err == nil {
		return number, true
	}
	value, err := strconv.ParseFloat(string(raw), 64) // 4.5e15, as some write it
	return int64(value), err == nil && value > 0 && value < 2*idsRange && float64(int64(value)) == value
}
