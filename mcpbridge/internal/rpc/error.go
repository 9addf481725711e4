package rpc

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Error is the error member of a JSON-RPC response.
type Error struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// UnmarshalJSON reads an error of any form, so that the words of the server are not lost. The code decides what becomes of a
// call: what is no integer is the code 0, and is added to the message.
func (e *Error) UnmarshalJSON(raw []byte) error {
	var members struct {
		Code    json.RawMessage `json:"code"`
		Message json.RawMessage `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if json.Unmarshal(raw, &members) != nil {
		*e = Error{Message: textIn(raw)}
		return nil
	}
	*e = Error{Message: textIn(members.Message), Data: members.Data}
	if e.Message == "" {
		e.Message = othersIn(raw)
	}
	var exact bool
	if e.Code, exact = integerIn(members.Code); !exact {
		e.Message = strings.TrimSpace(e.Message + " (code " + textIn(members.Code) + ")")
	}
	return nil
}

// othersIn returns the members of an error that the specification does not have, as JSON, or nothing if there are none.
func othersIn(raw json.RawMessage) string {
	var others map[string]json.RawMessage
	json.Unmarshal(raw, &others) //nolint:errcheck // it is an object
	for _, known := range []string{"code", "message", "data"} {
		delete(others, known)
	}
	if len(others) == 0 {
		return ""
	}
	text, _ := json.Marshal(others) // it was JSON
	return string(text)
}

// textIn returns a text, or another value as JSON. It is empty for null.
func textIn(raw json.RawMessage) (text string) {
	var compact bytes.Buffer
	if json.Unmarshal(raw, &text) != nil && json.Compact(&compact, raw) == nil {
		return compact.String()
	}
	return text
}

// integerIn returns a number that may have a fraction of zero. No value, and null, are 0.
func integerIn(raw json.RawMessage) (number int64, ok bool) {
	if len(raw) == 0 || string(raw) == "null" {
		return 0, true
	}
	if number, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return number, true
	}
	value, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || value != math.Trunc(value) || math.Abs(value) >= 1<<53 {
		return 0, false
	}
	return int64(value), true
}
