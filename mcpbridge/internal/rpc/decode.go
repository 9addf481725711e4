package rpc

import (
	"encoding/json"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdkjson "github.com/segmentio/encoding/json"

	"github.com/mcpactor/mcpactor/internal/wellformed"
)

// Decoded is a message that was decoded from data.
type Decoded struct {
	Message jsonrpc.Message // it may refer to the data
	HasRest bool            // something follows the message, which the SDK ignores
	mended  bool            // the SDK would refuse the data
	id      []byte          // where its id is in the data
}

// Decode decodes a message with the same result as [jsonrpc.DecodeMessage], except for a response with an error that this
// function refuses, or whose words it drops: they are kept. That function allocates a buffer of
// 36 KB each time. So Decode itself decodes the usual messages, in place, with the JSON library of the SDK.
// [jsonrpc.DecodeMessage] decodes the others.
func Decode(data []byte) (Decoded, error) {
	m, ok := parse(data)
	msg := Decoded{id: m.ID.raw}
	if ok {
		msg.Message = m.plain()
	}
	if msg.Message != nil {
		return msg, nil
	}
	var err error
	msg.Message, err = jsonrpc.DecodeMessage(data)
	msg.HasRest = err == nil && !sdkjson.Valid(data)
	if id := ParseID(m.ID.raw); (err != nil || isWordless(msg.Message)) && ok && m.Method == nil && id.IsValid() && m.Error.isThere() {
		msg.Message, msg.mended, err = &jsonrpc.Response{ID: id, Error: m.failure()}, true, nil
	}
	return msg, err
}

// isWordless reports whether a message is a response with an error that has no words of the server.
func isWordless(msg jsonrpc.Message) bool {
	response, is := msg.(*jsonrpc.Response)
	if !is {
		return false
	}
	failure, is := response.Error.(*jsonrpc.Error) //nolint:errorlint // it was decoded
	return is && failure.Message == ""
}

// failure returns the error in a response, whatever its form.
func (m members) failure() *jsonrpc.Error {
	var e Error
	e.UnmarshalJSON(m.Error.raw) //nolint:errcheck // it takes any value
	return &jsonrpc.Error{Code: e.Code, Message: e.Message, Data: e.Data}
}

// members are the members of a message, as JSON.
type members struct {
	Version string             `json:"jsonrpc"`
	ID      member             `json:"id"`
	Method  sdkjson.RawMessage `json:"method"`
	Params  sdkjson.RawMessage `json:"params"`
	Result  sdkjson.RawMessage `json:"result"`
	Error   member             `json:"error"`
}

// member is a member that may occur several times. The SDK decodes each occurrence.
type member struct {
	raw   []byte // the last one
	times int
}

// UnmarshalJSON keeps raw.
func (m *member) UnmarshalJSON(raw []byte) error {
	m.raw = raw
	m.times++
	return nil
}

// isThere reports whether the member occurs, and is not null.
func (m member) isThere() bool { return m.raw != nil && string(m.raw) != "null" }

// parse returns the members of a message. They refer to data. It first checks the depth and the syntax: the library is
// recursive, so that a very deep message would end the process, and it panics on some malformed values.
func parse(data []byte) (m members, ok bool) {
	if wellformed.IsTooDeep(data) || !sdkjson.Valid(data) {
		return m, false
	}
	_, err := sdkjson.Parse(data, &m, sdkjson.ZeroCopy|sdkjson.DontMatchCaseInsensitiveStructFields)
	return m, err == nil && m.Version == "2.0" && m.ID.times <= 1 && m.Error.times <= 1
}

// plain returns the message if it is of the usual form, which the SDK decodes alike, or nil.
func (m members) plain() jsonrpc.Message {
	id, ok := plainID(m.ID)
	if !ok || m.Error.isThere() {
		return nil
	}
	if m.Method == nil && id.IsValid() {
		return &jsonrpc.Response{ID: id, Result: json.RawMessage(m.Result)}
	}
	if method, ok := plainText(m.Method); ok {
		return &jsonrpc.Request{ID: id, Method: method, Params: json.RawMessage(m.Params)}
	}
	return nil
}

// plainID returns an id that is a number of digits or plain text, or no id if there is none.
func plainID(m member) (id jsonrpc.ID, ok bool) {
	if m.raw == nil {
		return id, true
	}
	if number, ok := plainNumber(m.raw); ok {
		id, _ = jsonrpc.MakeID(float64(number))
		return id, true
	}
	text, ok := plainText(m.raw)
	if ok {
		id, _ = jsonrpc.MakeID(text)
	}
	return id, ok
}

// plainNumber returns a number that has only digits.
func plainNumber(raw []byte) (number int64, ok bool) {
	for i, c := range raw {
		if c < '0' || c > '9' || i == 0 && c == '0' && len(raw) > 1 {
			return 0, false
		}
	}
	number, err := strconv.ParseInt(string(raw), 10, 64)
	return number, err == nil
}

// plainText returns a text without special characters.
func plainText(raw []byte) (text string, ok bool) {
	if len(raw) < 2 || raw[0] != '"' || !isPlain(raw[1:len(raw)-1]) {
		return "", false
	}
	return string(raw[1 : len(raw)-1]), true
}

// Readable returns the data of a message that the SDK reads.
func (m Decoded) Readable(data []byte) []byte {
	if m.mended {
		data, _ = jsonrpc.EncodeMessage(m.Message) // it was decoded before
	}
	return data
}

// Restored returns the data of a response with its current id. It changes the data in place if the id fits.
func (m Decoded) Restored(data []byte) []byte {
	resp, ok := m.Message.(*jsonrpc.Response)
	if !ok {
		return data
	}
	var digits [20]byte
	number, ok := resp.ID.Raw().(int64)
	text := strconv.AppendInt(digits[:0], number, 10)
	if !ok || len(text) > len(m.id) || m.mended {
		data, _ = jsonrpc.EncodeMessage(resp) // it was decoded before
		return data
	}
	for i := copy(m.id, text); i < len(m.id); i++ {
		m.id[i] = ' '
	}
	return data
}

// unnamed are the ids of errors from servers that have not read the id of the request.
var unnamed = map[string]bool{"": true, "null": true, `""`: true, `"server-error"`: true}

// UnnamedError returns the error in a response without the id of a request, or nil if data is
// no such response.
func UnnamedError(data []byte) *jsonrpc.Error {
	m, ok := parse(data)
	if !ok || m.Method != nil || !m.Error.isThere() || !unnamed[string(m.ID.raw)] {
		return nil
	}
	return m.failure()
}
