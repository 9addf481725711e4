package mcpbridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdkjson "github.com/segmentio/encoding/json"
)

var errTooLarge = errors.New("too large")

func tooLarge(srv *Server) string {
	return fmt.Sprintf("the result has more than %d bytes (maxResult)", srv.maxResult())
}

// maxNoted bounds the events that are looked into, for an error that is the answer
// to a call. A result needs no looking into.
const maxNoted = 16 << 10

// events is a stream of events that answers a call. It ends at one that is too
// large, and notes the answer when it is an error: the SDK's own error for that may
// be one of a connection that has ended.
type events struct {
	io.ReadCloser
	ex    *exchange
	x     *exchanger
	limit int

	size  int    // of the event so far
	blank bool   // its last line is empty so far
	event []byte // its beginning, if it is not longer than maxNoted

	closed bool
}

func newEvents(body io.ReadCloser, ex *exchange, x *exchanger) *events {
	ex.streamed(1)
	return &events{ReadCloser: body, ex: ex, x: x, limit: x.srv.maxResult()}
}

// Read reads on, and ends the stream at an event over the limit.
func (e *events) Read(p []byte) (int, error) {
	if e.size > e.limit {
		return 0, io.ErrUnexpectedEOF // the SDK drains what it has given up
	}
	n, err := e.ReadCloser.Read(p)
	from := 0
	for i, c := range p[:n] {
		e.size++
		switch {
		case c == '\n' && e.blank:
			e.take(p[from : i+1])
			e.x.conn.progress.hearEvent(e.event)
			e.ex.look(e.event, e.size)
			e.size, e.event, from = 0, e.event[:0], i+1
		case c == '\n':
			e.blank = true
		case c != '\r':
			e.blank = false
		}
	}
	e.take(p[from:n])
	if e.size > e.limit {
		e.ex.refuse(&Error{Class: Protocol, Sent: true, Detail: tooLarge(e.x.srv)})
		return 0, io.ErrUnexpectedEOF
	}
	return n, err
}

// Close ends the stream.
func (e *events) Close() error {
	err := e.ReadCloser.Close()
	if !e.closed {
		e.closed = true
		e.ex.streamed(-1)
	}
	return err
}

func (e *events) take(p []byte) {
	if room := maxNoted - len(e.event); room > 0 {
		e.event = append(e.event, p[:min(len(p), room)]...)
	}
}

// look notes the error that an event carries for the call.
func (ex *exchange) look(event []byte, size int) {
	isResult := bytes.Contains(event, []byte(`"result"`)) && !bytes.Contains(event, []byte(`"error"`))
	if isResult || size > len(event) {
		return // decoding costs as much as all the rest
	}
	ex.note(func(ex *exchange) {
		if resp := responseOf(dataOf(event)); resp != nil && resp.ID == idOf(ex.raw) {
			ex.answer(resp)
		}
	})
}

// dataOf returns the data of an event.
func dataOf(event []byte) (data []byte) {
	for line := range bytes.Lines(event) {
		if field, value := fieldOf(line); field == "data" {
			data = append(data, value...)
		}
	}
	return data
}

// responseOf returns the response that the SDK takes data for, or nil.
func responseOf(data []byte) *jsonrpc.Response {
	msg, err := jsonrpc.DecodeMessage(data)
	resp, ok := msg.(*jsonrpc.Response)
	if err != nil || !ok {
		return nil
	}
	return resp
}

// maxPlain bounds the objects and arrays of an answer that [isResult] looks into. The
// SDK refuses to decode what is nested deeper than that.
const maxPlain = 1000

// isResult reports whether data is the result of the call with an id, such that the
// SDK is sure to take it: it is decoded by the library that the SDK decodes with, but
// in place. Most answers are; of the others [responseOf] knows.
func isResult(data, id []byte) bool {
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) > maxPlain {
		return false
	}
	var msg struct {
		Version string             `json:"jsonrpc"`
		ID      any                `json:"id"` // as in the SDK, which may not take any number
		Method  sdkjson.RawMessage `json:"method"`
		Result  sdkjson.RawMessage `json:"result"`
		Error   sdkjson.RawMessage `json:"error"`
	}
	rest, err := sdkjson.Parse(data, &msg, sdkjson.ZeroCopy|sdkjson.DontMatchCaseInsensitiveStructFields)
	number, _ := msg.ID.(float64)
	var digits [20]byte
	return err == nil && len(rest) == 0 && msg.Version == "2.0" &&
		float64(int64(number)) == number && bytes.Equal(strconv.AppendInt(digits[:0], int64(number), 10), id) &&
		msg.Method == nil && msg.Result != nil && msg.Error == nil
}

// idOf returns the id that JSON is.
func idOf(raw json.RawMessage) jsonrpc.ID {
	var value any
	json.Unmarshal(raw, &value)    //nolint:errcheck // it was parsed before
	id, _ := jsonrpc.MakeID(value) // or none
	return id
}

func readBounded(r io.Reader, limit int) ([]byte, error) {
	if limit == int(^uint(0)>>1) {
		return io.ReadAll(r)
	}
	data, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	if err == nil && len(data) > limit {
		return data[:limit], errTooLarge
	}
	return data, err
}

// bodyOf returns the body of a request of the SDK, whose bodies can be had
// again.
func bodyOf(req *http.Request) []byte {
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

// headOf returns the envelope of the message that a request of the SDK carries. Of
// what the SDK writes, its beginning is enough.
func headOf(req *http.Request) rpcEnvelope {
	if req.GetBody != nil {
		if r, err := req.GetBody(); err == nil {
			begin := make([]byte, 128)
			n, _ := io.ReadFull(r, begin)
			r.Close()
			if msg, ok := scan(begin[:n]); ok {
				return msg
			}
		}
	}
	return parse(bodyOf(req))
}

// scan returns the envelope of a call from the beginning of it, if that is as the SDK
// writes it, with an id that is a number.
func scan(begin []byte) (msg rpcEnvelope, ok bool) {
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
	return rpcEnvelope{Version: "2.0", ID: json.RawMessage(id), Method: string(method)}, true
}

// parse returns the envelope of a JSON-RPC message; an empty one if it is none.
func parse(raw []byte) rpcEnvelope {
	var msg rpcEnvelope
	if json.Unmarshal(raw, &msg) != nil {
		return rpcEnvelope{}
	}
	return msg
}

// rpcFailure returns a JSON-RPC error response.
func rpcFailure(id json.RawMessage, code int64, text string) []byte {
	return rpcResponse(id, rpcError{Code: code, Message: text})
}

// rpcResponse returns the JSON-RPC response that is an error.
func rpcResponse(id json.RawMessage, e rpcError) []byte {
	if !hasID(id) {
		id = json.RawMessage("null")
	}
	data, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "error": e})
	return data
}

// mediaType returns that of a response, without parameters. One that the SDK reads
// loses them in the response, too: the SDK takes none that are malformed.
func mediaType(resp *http.Response) string {
	value := resp.Header.Get("Content-Type")
	if value == typeJSON || value == typeSSE { // most are, and need no parsing
		return value
	}
	kind, _, _ := mime.ParseMediaType(value)
	if kind == typeJSON || kind == typeSSE {
		resp.Header.Set("Content-Type", kind)
	}
	return kind
}

// buffer is a body that was read before.
type buffer struct{ bytes.Reader }

// Close does nothing.
func (*buffer) Close() error { return nil }

// bodyWith returns the body with these bytes.
func bodyWith(data []byte) io.ReadCloser {
	b := new(buffer)
	b.Reset(data)
	return b
}

// answer makes a response that the SDK takes for the server's.
func answer(req *http.Request, status int, kind string, body []byte, from ...http.Header) *http.Response {
	header := http.Header{}
	for _, h := range from {
		header = h.Clone()
		header.Del("Content-Length")
		header.Del("Content-Encoding")
	}
	if kind != "" {
		header.Set("Content-Type", kind)
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: bodyWith(body), ContentLength: int64(len(body)), Request: req,
	}
}
