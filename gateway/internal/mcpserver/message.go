package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdkjson "github.com/segmentio/encoding/json"

	"github.com/mcpactor/mcpactor/internal/wellformed"
)

// maxMessage bounds a message of a client, in bytes.
const maxMessage = 64 << 20

// Message is a message of JSON-RPC: a request, a notification or a response. Params and Result are as they came, so that
// nothing in them is lost.
type Message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *jsonrpc.Error  `json:"error,omitempty"`
	// Cause is the error that a handler returned, of which Error is what can be sent. A client in this process gets it as it is.
	Cause error `json:"-"`

	members, meta Object // see Members and Meta
}

// Members returns the members of Params. Neither Members nor Meta may be called by two goroutines at once.
func (m *Message) Members() Object {
	if m.members == nil {
		m.members = ObjectOf(m.Params)
	}
	return m.members
}

// Meta returns the members of _meta in Params.
func (m *Message) Meta() Object {
	if m.meta == nil {
		m.meta = Object{}
		if meta := m.Members()["_meta"]; meta != nil {
			m.meta = ObjectOf(meta)
		}
	}
	return m.meta
}

// With returns the message with other parameters.
func (m *Message) With(params Object) (*Message, error) {
	data, err := Encode(params)
	return &Message{ID: m.ID, Method: m.Method, Params: data, members: params, meta: m.Meta()}, err
}

// isRequest reports whether a message wants a response.
func (m *Message) isRequest() bool { return m.Method != "" && m.ID != nil }

// encode returns a message on one line, with its parameters and its result as they are.
func (m *Message) encode() (line []byte, err error) {
	var method, failure []byte
	if m.Method != "" {
		method, err = Encode(m.Method)
	}
	if m.Error != nil {
		failure, err = Encode(m.Error)
	}
	if err != nil {
		return nil, err
	}
	const names = `{"jsonrpc":"2.0","id":,"method":,"params":,"result":,"error":}` + "\n"
	line = make([]byte, 0, len(names)+len(m.ID)+len(method)+len(m.Params)+len(m.Result)+len(failure))
	line = append(line, `{"jsonrpc":"2.0"`...)
	for _, member := range [...]struct {
		name  string
		value []byte
	}{{`,"id":`, m.ID}, {`,"method":`, method}, {`,"params":`, m.Params}, {`,"result":`, m.Result}, {`,"error":`, failure}} {
		if len(member.value) > 0 {
			line = append(append(line, member.name...), onLine(member.value)...)
		}
	}
	return append(line, '}'), nil
}

// onLine returns JSON on one line.
func onLine(data []byte) []byte {
	if bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0 {
		return data
	}
	var line bytes.Buffer
	json.Compact(&line, data) //nolint:errcheck // it is JSON
	return line.Bytes()
}

// Encode returns a value as JSON on one line, without the escapes for HTML, which would change what is passed on.
func Encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// encoded returns a value as JSON, which is the value itself if it is JSON already.
func encoded(v any) (json.RawMessage, error) {
	if raw, is := v.(json.RawMessage); is && isJSON(raw) {
		return raw, nil
	}
	return Encode(v)
}

// isResponse reports whether a message is a response. Its error may be malformed.
func (m *Message) isResponse() bool {
	return m.Method == "" && m.ID != nil && (m.Result != nil || m.Error != nil)
}

// byteOrderMark begins what some programs write, such as a shell of Windows.
var byteOrderMark = []byte("\ufeff")

// decode returns the messages in a JSON text: one, or those of a batch, which protocol 2025-03-26 has. refused are the responses to
// what is no message.
func decode(data []byte) (messages, refused []*Message) {
	data = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(data), byteOrderMark))
	batch := []json.RawMessage{data}
	isBatch := len(data) > 0 && data[0] == '['
	switch {
	case !utf8.Valid(data):
		return nil, []*Message{unread(jsonrpc.CodeParseError, "the text is not valid UTF-8")}
	case isBatch && json.Unmarshal(data, &batch) != nil:
		return nil, []*Message{unread(jsonrpc.CodeParseError, "this is no JSON")}
	case isBatch && len(batch) == 0:
		return nil, []*Message{unread(jsonrpc.CodeInvalidRequest, "the batch is empty")}
	}
	for _, one := range batch {
		m := new(Message)
		if no := m.read(one); no != nil {
			refused = append(refused, no)
		} else {
			messages = append(messages, m)
		}
	}
	return messages, refused
}

// read reads a message. It returns the response to what is none.
func (m *Message) read(data []byte) (refused *Message) {
	var err error
	if !parse(data, m) {
		*m = Message{}
		err = json.Unmarshal(data, m) // a member of another type than it has leaves the others
	}
	var other *json.UnmarshalTypeError
	switch {
	case err != nil && !errors.As(err, &other):
		return unread(jsonrpc.CodeParseError, err.Error())
	case m.isResponse():
		return nil
	case m.ID != nil && !isID(m.ID):
		return unread(jsonrpc.CodeInvalidRequest, "id: must be a string or an integer")
	case err == nil && m.Version == "2.0" && m.Method != "":
		if string(m.Params) == "null" {
			m.Params = nil
		}
		return nil
	}
	refused = unread(jsonrpc.CodeInvalidRequest, `this is no request of JSON-RPC: it needs "jsonrpc": "2.0", and a method`)
	if m.ID != nil {
		refused.ID = m.ID
	}
	return refused
}

// isID reports whether JSON is the id of a request: a string or an integer.
func isID(id json.RawMessage) bool {
	number, err := strconv.ParseFloat(string(id), 64)
	return id[0] == '"' || err == nil && number == math.Trunc(number)
}

// unread returns the response to what is no message, or to one whose id cannot be used.
func unread(code int64, text string) *Message {
	return &Message{ID: json.RawMessage("null"), Error: &jsonrpc.Error{Code: code, Message: text}}
}

// tooLong returns the response to a message that is too long to be read.
func tooLong() *Message {
	return unread(jsonrpc.CodeInvalidRequest, fmt.Sprintf("a message may have %d MiB", maxMessage>>20))
}

// idInUse returns the response to a request that has the id of another one.
func idInUse() *Message {
	return unread(jsonrpc.CodeInvalidRequest, "id: it is that of a request without a response")
}

// Invalid returns the error for parameters that are wrong.
func Invalid(text string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: text}
}

// Object is a JSON object whose members are as they came.
type Object map[string]json.RawMessage

// ObjectOf returns JSON as an object, which is empty if it is none.
func ObjectOf(data json.RawMessage) Object {
	o := map[string]json.RawMessage{}
	if !parse(data, &o) || o == nil {
		return Object{}
	}
	return o
}

// isJSON reports whether data is JSON that parse can take: its library is recursive, and panics on some malformed values.
func isJSON(data []byte) bool { return !wellformed.IsTooDeep(data) && sdkjson.Valid(data) }

// parse decodes JSON in place, several times as fast as package json, with the library that the SDK uses.
func parse(data []byte, to any) bool {
	if !isJSON(data) {
		return false
	}
	_, err := sdkjson.Parse(data, to, sdkjson.ZeroCopy)
	return err == nil
}

// Text returns a member that is a string, or "".
func (o Object) Text(name string) (text string) {
	if o[name] == nil {
		return ""
	}
	json.Unmarshal(o[name], &text) //nolint:errcheck // it is "" then
	return text
}

// With returns the object with a member set to a value, which can be encoded as JSON.
func (o Object) With(name string, value any) Object {
	o[name], _ = Encode(value)
	return o
}

// Without returns the members that have none of these names, or nil if there are none.
func (o Object) Without(names ...string) (rest map[string]json.RawMessage) {
next:
	for name, value := range o {
		for _, known := range names {
			if name == known {
				continue next
			}
		}
		if rest == nil {
			rest = map[string]json.RawMessage{}
		}
		rest[name] = value
	}
	return rest
}
