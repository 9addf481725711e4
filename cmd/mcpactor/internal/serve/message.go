package serve

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// message is a message of JSON-RPC: a request, a notification or a response. Params and Result are as they came, so that
// nothing in them is lost.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *jsonrpc.Error  `json:"error,omitempty"`
}

// isRequest reports whether a message wants a response.
func (m *message) isRequest() bool { return m.Method != "" && m.ID != nil }

// encode returns a message on one line.
func (m *message) encode() ([]byte, error) {
	m.Version = "2.0"
	return encode(m)
}

// encode returns a value as JSON on one line, without the escapes for HTML, which would change what is passed on.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
}

// decode returns the messages in a JSON text: one, or those of a batch of protocol 2025-03-26.
func decode(data []byte) ([]*message, error) {
	data = bytes.TrimSpace(data)
	if len(data) > 0 && data[0] == '[' {
		var batch []*message
		if err := json.Unmarshal(data, &batch); err != nil || len(batch) == 0 {
			return nil, errors.Join(errors.New("it is no batch of JSON-RPC"), err)
		}
		return batch, nil
	}
	one := new(message)
	if err := json.Unmarshal(data, one); err != nil {
		return nil, err
	}
	return []*message{one}, nil
}

// invalid returns the error for parameters that are wrong.
func invalid(text string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: text}
}

// object is a JSON object whose members are as they came.
type object map[string]json.RawMessage

// objectOf returns parameters as an object, which is empty if they are none.
func objectOf(data json.RawMessage) object {
	o := object{}
	if json.Unmarshal(data, &o) != nil || o == nil {
		return object{}
	}
	return o
}

// text returns a member that is a string, or "".
func (o object) text(name string) (text string) {
	json.Unmarshal(o[name], &text) //nolint:errcheck // it is "" then
	return text
}

// with returns the object with a member set.
func (o object) with(name string, value json.RawMessage) object {
	o[name] = value
	return o
}

// without returns the members that have none of these names, or nil if there are none.
func (o object) without(names ...string) (rest map[string]json.RawMessage) {
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
