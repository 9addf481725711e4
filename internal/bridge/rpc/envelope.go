package rpc

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// rpcError is the error member of a JSON-RPC response.
type Error struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// rpcEnvelope is what has to be known of a JSON-RPC message.
type Envelope struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Error   *Error          `json:"error"`
}

// isCall reports whether the message is a request that wants an answer.
func (m *Envelope) IsCall() bool { return m.Method != "" && HasID(m.ID) }

func HasID(id json.RawMessage) bool { return len(id) > 0 && string(id) != "null" }

// JSON-RPC errors that mean the same whoever the server is.
const (
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	codeInternalError  = -32603
	// codeURLElicitation asks the user to visit a URL first.
	CodeURLElicitation = -32042
	// codeMCPLast is the last of the errors that the specification of MCP defines for a
	// request that the server has looked at: -32020, -32021 and -32022.
	CodeMCPFirst, CodeMCPLast = -32020, -32022
)

// scan returns the envelope of a call from the beginning of it, if that is as the SDK
// writes it, with an id that is a number.
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
	return Envelope{Version: "2.0", ID: json.RawMessage(id), Method: string(method)}, true
}

// parse returns the envelope of a JSON-RPC message; an empty one if it is none.
func Parse(raw []byte) Envelope {
	var msg Envelope
	if json.Unmarshal(raw, &msg) != nil {
		return Envelope{}
	}
	return msg
}

// rpcFailure returns a JSON-RPC error response.
func Failure(id json.RawMessage, code int64, text string) []byte {
	return Refusal(id, Error{Code: code, Message: text})
}

// rpcResponse returns the JSON-RPC response that is an error.
func Refusal(id json.RawMessage, e Error) []byte {
	if !HasID(id) {
		id = json.RawMessage("null")
	}
	data, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": e})
	return data
}

// responseOf returns the response that the SDK takes data for, or nil.
func ResponseOf(data []byte) *jsonrpc.Response {
	msg, err := jsonrpc.DecodeMessage(data)
	resp, ok := msg.(*jsonrpc.Response)
	if err != nil || !ok {
		return nil
	}
	return resp
}

// idOf returns the id that JSON is.
func IDOf(raw json.RawMessage) jsonrpc.ID {
	var value any
	json.Unmarshal(raw, &value)    //nolint:errcheck // it was parsed before
	id, _ := jsonrpc.MakeID(value) // or none
	return id
}
