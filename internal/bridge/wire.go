package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcpactor/mcpactor/mcpbridge"
)

var errTooLarge = errors.New("too large")

func tooLarge(srv *mcpbridge.Server) string {
	return fmt.Sprintf("the result has more than %d bytes (maxResult)", maxResult(srv))
}

// events is a stream of events that answers a call. It passes on whole events, with
// the ids of the SDK, and ends at one that is too large. It notes the answer when that is
// an error: the SDK's own error for it may be one of a connection that has ended.
type events struct {
	io.ReadCloser
	eventBuffer
	ex *exchange
	x  *exchanger

	end    error // after what came; nil before
	closed bool
}

func newEvents(body io.ReadCloser, ex *exchange, x *exchanger) *events {
	ex.streamed(1)
	return &events{ReadCloser: body, ex: ex, x: x}
}

// Read reads whole events.
func (e *events) Read(p []byte) (int, error) {
	for e.whole == 0 {
		if e.end != nil {
			return 0, e.end // the SDK drains what it has given up
		}
		n, err := e.ReadCloser.Read(p)
		switch {
		case !e.take(p[:n], maxResult(e.x.srv), e):
			e.ex.refuse(&mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Detail: tooLarge(e.x.srv)})
			e.end = io.ErrUnexpectedEOF
		case err != nil:
			e.end = err
			e.rest(errors.Is(err, io.EOF), e) // of which the SDK takes the last event as if it were whole
		}
	}
	return e.read(p), nil
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

func (e *events) onLine([]byte) {}

func (e *events) onEvent(event []byte) []byte {
	e.x.conn.progress.hearEvent(event)
	if e.x.ids == nil {
		return event
	}
	event, what := e.x.ids.restoreEvent(event, e.ex.raw)
	switch {
	case what == anError:
		e.ex.note(func(ex *exchange) {
			if resp := responseOf(dataOf(event)); resp != nil && resp.ID == idOf(ex.raw) {
				ex.answer(resp)
			}
		})
	case what == nonsense && hasID(e.ex.raw):
		refusal := &mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Detail: "an event of the answer is no JSON-RPC message", Status: http.StatusOK, Doubt: true}
		e.ex.refuse(refusal)
		event = withData(event, rpcFailure(e.ex.raw, 0, refusal.Detail))
	}
	return event
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
