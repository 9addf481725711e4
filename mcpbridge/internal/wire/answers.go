package wire

import (
	"encoding/json"
	"regexp"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

// Answers reads the messages of a server over one connection before the SDK reads them. It notes responses in
// their exchanges, and takes the results that an exchange wants, so that the SDK does not decode them.
//
// All methods may be called from any goroutine.
type Answers struct {
	IDs      *rpc.IDs
	Progress *Progress
	// Custom is called with each notification, in the order in which they arrive. It must not
	// block, and may be nil.
	Custom func(method string, params json.RawMessage)
	// Keep returns the parameters of a request or notification of MCP for the SDK, or is nil.
	Keep func(params json.RawMessage) json.RawMessage
}

// Waiting knows which exchanges wait for a response.
type Waiting interface {
	// ExchangeFor returns the exchange whose last request has an id of the SDK, or nil.
	ExchangeFor(jsonrpc.ID) *Exchange
}

// Use is what becomes of a message.
type Use uint8

// The uses of a message.
const (
	Passed    Use = iota // the SDK gets it
	Taken                // the exchange has the result, and the SDK gets an error in its place
	Stray                // it is a response to a request of another connection: the SDK must not get it
	Unawaited            // it is a response that no exchange waits for here: the SDK must not get it
)

// Read reads a message, and restores the id of the SDK. It returns the exchange that a response
// belongs to.
func (a *Answers) Read(msg jsonrpc.Message, waiting Waiting) (Use, *Exchange) {
	switch msg := msg.(type) {
	case *jsonrpc.Request:
		if msg.Method == rpc.MethodProgress {
			a.Progress.Notify(msg.Params)
		}
		if a.Custom != nil && !msg.IsCall() {
			a.Custom(msg.Method, msg.Params)
		}
		if a.Keep != nil && rpc.IsForOthers(msg.Method) {
			msg.Params = a.Keep(msg.Params)
		}
	case *jsonrpc.Response:
		if !a.IDs.Restore(msg) {
			return Stray, nil
		}
		ex := waiting.ExchangeFor(msg.ID)
		if ex == nil {
			return Unawaited, nil
		}
		if ex.Over == nil { // a handshake
			replaceVersion(msg.Result)
		}
		if ex.Answered(msg) {
			msg.Result, msg.Error = nil, errTaken
			return Taken, ex
		}
		return Passed, ex
	}
	return Passed, nil
}

// oldVersion finds the protocol version before the oldest that the SDK knows. Servers with that version
// work if it is replaced by the oldest that the SDK knows, as other clients do.
var oldVersion = regexp.MustCompile(`"protocolVersion"\s*:\s*("2024-10-07")`)

// replaceVersion replaces oldVersion in the result of initialize, in place.
func replaceVersion(result []byte) {
	if at := oldVersion.FindSubmatchIndex(result); at != nil {
		copy(result[at[2]:], `"2024-11-05"`)
	}
}

// errTaken is the error that the SDK gets in place of a result that was taken.
var errTaken = &jsonrpc.Error{Message: "the result was taken"}

// IsResponse reports whether data is a response to the request of the SDK with this id. It notes nothing.
func (a *Answers) IsResponse(data []byte, call json.RawMessage) bool {
	msg, err := a.Decode(data, call)
	resp, ok := msg.Message.(*jsonrpc.Response)
	if err != nil || !ok {
		return false
	}
	number, own := a.IDs.Number(resp.ID)
	return own && strconv.FormatInt(number, 10) == string(call)
}

// Decode decodes a message that comes in answer to the request of the SDK with this id. An error without
// an id counts as the response to the request: the server could not read the id.
func (a *Answers) Decode(data []byte, call json.RawMessage) (rpc.Decoded, error) {
	msg, err := rpc.Decode(data)
	if resp, ok := msg.Message.(*jsonrpc.Response); err == nil && (!ok || resp.Error == nil) {
		return msg, nil
	}
	number, noCall := strconv.ParseInt(string(call), 10, 64)
	if failure := rpc.UnnamedError(data); failure != nil && noCall == nil {
		id, _ := jsonrpc.MakeID(float64(a.IDs.OnWire(number)))
		return rpc.Decoded{Message: &jsonrpc.Response{ID: id, Error: failure}}, nil
	}
	return msg, err
}
