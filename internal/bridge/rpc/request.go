package rpc

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
)

// Renumber returns the message that a request of the SDK carries, with the id of the
// SDK, and the request with the id of the connection.
func (i *IDs) Renumber(req *http.Request) (Envelope, *http.Request) {
	begin := make([]byte, 128)
	n, _ := io.ReadFull(req.Body, begin) // it is in memory
	begin = begin[:n]
	if call, ok := Scan(begin); ok {
		number, err := strconv.ParseInt(string(call.ID), 10, 64)
		if err == nil {
			onWire := make([]byte, 0, len(begin)+len("4503599627370496"))
			onWire = strconv.AppendInt(append(onWire, callHead...), i.OnWire(number), 10)
			onWire = append(onWire, begin[len(callHead)+len(call.ID):]...)
			return call, withHead(req, onWire, n)
		}
	}
	rest, _ := io.ReadAll(req.Body)
	body := append(begin, rest...)
	size, msg := len(body), Parse(body)
	if msg.Method == MethodCancelled {
		body = i.cancelled(body)
	}
	return msg, withHead(req, body, size)
}

// cancelled returns a notifications/cancelled of the SDK with the id of the connection.
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

// CancelledParams does the same with the parameters of such a notification.
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

// spliced is a body whose beginning was replaced.
type spliced struct {
	begin []byte
	io.ReadCloser
}

// Read reads the beginning, then the rest.
func (s *spliced) Read(p []byte) (int, error) {
	if len(s.begin) == 0 {
		return s.ReadCloser.Read(p)
	}
	n := copy(p, s.begin)
	s.begin = s.begin[n:]
	return n, nil
}

// withHead returns a request with other bytes in place of the first bytes of its body,
// which have been read. instead is how many those were.
func withHead(req *http.Request, begin []byte, instead int) *http.Request {
	r := *req
	r.ContentLength += int64(len(begin) - instead)
	r.Body = &spliced{begin, req.Body}
	r.GetBody = func() (io.ReadCloser, error) {
		body, err := req.GetBody()
		if err == nil {
			_, err = io.CopyN(io.Discard, body, int64(instead))
		}
		return &spliced{begin, body}, err
	}
	return &r
}

// BodyOf returns the body of a request of the SDK. Such a body can be read again.
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
