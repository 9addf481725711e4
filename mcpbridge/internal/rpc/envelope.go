package rpc

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Envelope is a JSON-RPC message without its parameters and its result. The ID is JSON.
type Envelope struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Error  *Error          `json:"error"`
}

// IsCall reports whether the message is a request that gets a response.
func (m *Envelope) IsCall() bool { return m.Method != "" && HasID(m.ID) }

// IsAnswer reports whether the message is a response.
func (m *Envelope) IsAnswer() bool { return m.Method == "" }

// ParseID returns an id that is given as JSON, or no id.
func ParseID(data []byte) (id jsonrpc.ID) {
	var value any
	if json.Unmarshal(data, &value) == nil {
		id, _ = jsonrpc.MakeID(value) // no id, if it is neither a string nor a number
	}
	return id
}

// HasID reports whether a message has an id that is not null.
func HasID(id json.RawMessage) bool { return len(id) > 0 && string(id) != "null" }

// SameID reports whether an answer has the id of a request, which is a number. A text with the
// same digits is the same id.
func SameID(answer, request json.RawMessage) bool {
	answer = bytes.TrimSpace(answer)
	if n := len(answer); n > 1 && answer[0] == '"' && answer[n-1] == '"' {
		answer = answer[1 : n-1]
	}
	return len(request) > 0 && bytes.Equal(bytes.TrimSuffix(answer, []byte(".0")), bytes.Trim(request, `"`))
}

// The codes of errors that mean the same from every server.
const (
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	// CodeURLElicitation asks the user to visit a URL first.
	CodeURLElicitation = -32042
	// CodeMCPFirst and CodeMCPLast bound the errors that the specification of MCP defines for a
	// request that the server has processed: -32020, -32021 and -32022.
	CodeMCPFirst = -32020
	CodeMCPLast  = -32022
)

// Scan returns the envelope of a call that begins as the SDK writes it, with a number as its id. It returns false for
// other data.
func Scan(begin []byte) (msg Envelope, ok bool) {
	rest, ok := bytes.CutPrefix(begin, []byte(`{"jsonrpc":"2.0","id":`))
	if !ok {
		return msg, false
	}
	id, rest, ok := bytes.Cut(rest, []byte(`,"method":"`))
	if !ok || len(id) == 0 || bytes.ContainsFunc(id, func(r rune) bool { return r < '0' || r > '9' }) {
		return msg, false
	}
	method, _, ok := bytes.Cut(rest, []byte(`"`))
	if !ok || bytes.ContainsRune(method, '\\') {
		return msg, false
	}
	msg = Envelope{ID: json.RawMessage(id), Method: MethodCallTool}
	if string(method) != MethodCallTool { // for the most frequent method there is no allocation
		msg.Method = string(method)
	}
	return msg, true
}

// Trimmed returns a body without a byte order mark, and without blanks around it.
func Trimmed(body []byte) []byte {
	return bytes.TrimSpace(bytes.TrimPrefix(body, []byte(byteOrderMark)))
}

// Elements returns the elements of a JSON array, or none if the array is malformed. Any other body is one element.
func Elements(body []byte) (elements []json.RawMessage) {
	body = Trimmed(body)
	if !bytes.HasPrefix(body, []byte("[")) {
		return []json.RawMessage{body}
	}
	if json.Unmarshal(body, &elements) != nil {
		return nil
	}
	return elements
}

// Parts returns the JSON-RPC messages in the body of an answer: one, those of a batch, or none.
func Parts(body []byte) []json.RawMessage {
	parts := Elements(body)
	for _, part := range parts {
		if !bytes.Contains(part, []byte("jsonrpc")) {
			return nil
		}
	}
	return parts
}

// Parse returns the envelope of a JSON-RPC message, or an empty one if the message is malformed.
func Parse(raw []byte) Envelope {
	var msg Envelope
	if json.Unmarshal(raw, &msg) != nil {
		return Envelope{}
	}
	return msg
}

// Failure returns a JSON-RPC error response with a code and a text.
func Failure(id json.RawMessage, code int64, text string) []byte {
	return Refusal(id, Error{Code: code, Message: text})
}

// Refusal returns a JSON-RPC error response.
func Refusal(id json.RawMessage, e Error) []byte {
	if !HasID(id) {
		id = json.RawMessage("null")
	}
	data, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": e})
	return data
}
