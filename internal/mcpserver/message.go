package mcpserver

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Message is a message of JSON-RPC: a request, a notification or a response. Params and Result are as they came, so that
// nothing in them is lost.
type Message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *jsonrpc.Error  `json:"error,omitempty"`
}

// isRequest reports whether a message wants a response.
func (m *Message) isRequest() bool { return m.Method != "" && m.ID != nil }

// encode returns a message on one line.
func (m *Message) encode() ([]byte, error) {
	m.Version = "2.0"
	return Encode(m)
}

// Encode returns a value as JSON on one line, without the escapes for HTML, which would change what is passed on.
func Encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// decode returns the messages in a JSON text: one, or those of a batch of protocol 2025-03-26.
func decode(data []byte) (batch []*Message, err error) {
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '[' {
		err = json.Unmarshal(data, &batch)
	} else {
		batch = []*Message{{}}
		err = json.Unmarshal(data, batch[0])
	}
	if err == nil && len(batch) == 0 {
		err = errors.New("the batch is empty")
	}
	for _, m := range batch {
		if err == nil && m == nil {
			err = errors.New("a message of the batch is null")
		}
	}
	return batch, err
}

// Invalid returns the error for parameters that are wrong.
func Invalid(text string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: text}
}

// malformed returns the response to a message that cannot be read.
func malformed(err error) *Message {
	return &Message{ID: json.RawMessage("null"), Error: &jsonrpc.Error{Code: jsonrpc.CodeParseError, Message: err.Error()}}
}

// Object is a JSON object whose members are as they came.
type Object map[string]json.RawMessage

// ObjectOf returns JSON as an object, which is empty if it is none.
func ObjectOf(data json.RawMessage) Object {
	o := Object{}
	if json.Unmarshal(data, &o) != nil || o == nil {
		return Object{}
	}
	return o
}

// Text returns a member that is a string, or "".
func (o Object) Text(name string) (text string) {
	json.Unmarshal(o[name], &text) //nolint:errcheck // it is "" then
	return text
}

// With returns the object with a member set.
func (o Object) With(name string, value json.RawMessage) Object {
	o[name] = value
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
