package rpc

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
)

// Renumber returns the message in a request of the SDK, with the id of the SDK, and the request with the id on the
// wire. params are the parameters of a call that the SDK has sent without them, or nil.
func (i *IDs) Renumber(req *http.Request, params []byte) (Envelope, *http.Request) {
	body := make([]byte, max(0, req.ContentLength))
	io.ReadFull(req.Body, body) //nolint:errcheck // it is in memory
	req.Body.Close()
	if call, ok := Scan(body); ok {
		number, err := strconv.ParseInt(string(call.ID), 10, 64)
		switch {
		case err != nil:
		case params != nil:
			return call, withBody(req, encodeCall(i.OnWire(number), call.Method, params))
		default:
			onWire := make([]byte, 0, len(body)+idDigits)
			onWire = strconv.AppendInt(append(onWire, callHead...), i.OnWire(number), 10)
			return call, withBody(req, append(onWire, body[len(callHead)+len(call.ID):]...))
		}
	}
	msg := Parse(body)
	if msg.Method == MethodCancelled {
		body = i.cancelled(body)
	}
	return msg, withBody(req, body)
}

// cancelled returns a notifications/cancelled of the SDK with the id on the wire.
func (i *IDs) cancelled(body []byte) []byte {
	var msg struct {
		Version string          `json:"jsonrpc"`
		Method  string          `json:"method"`
		Params  json.RawMessage `json:"params"`
	}
	if json.Unmarshal(body, &msg) != nil {
		return body
	}
	msg.Params = i.CancelledParams(msg.Params)
	body, _ = json.Marshal(msg) // it was JSON before
	return body
}

// CancelledParams returns the parameters of a notifications/cancelled of the SDK with the id on the wire.
func (i *IDs) CancelledParams(raw json.RawMessage) json.RawMessage {
	var params map[string]json.RawMessage
	if json.Unmarshal(raw, &params) != nil {
		return raw
	}
	number, err := strconv.ParseInt(string(params["requestId"]), 10, 64)
	if err != nil {
		return raw
	}
	params["requestId"] = strconv.AppendInt(nil, i.OnWire(number), 10)
	raw, _ = json.Marshal(params) // it was JSON before
	return raw
}

// withBody returns a request with another body. The type of the body is one that net/http sends together with
// the headers.
func withBody(req *http.Request, body []byte) *http.Request {
	r := *req
	r.ContentLength = int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
	return &r
}

// BodyOf returns the body of a request of the SDK. The request can still be sent.
func BodyOf(req *http.Request) []byte {
	if req.GetBody == nil {
		return nil
	}
	r, err := req.GetBody()
	if err != nil {
		return nil
	}
	defer r.Close()
	data, _ := io.ReadAll(r)
	return data
}
