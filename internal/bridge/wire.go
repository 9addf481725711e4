package bridge

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/mcpactor/mcpactor/mcpbridge"

	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
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
	rpc.EventBuffer
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
	for !e.Ready() {
		if e.end != nil {
			return 0, e.end // the SDK drains what it has given up
		}
		n, err := e.ReadCloser.Read(p)
		switch {
		case !e.Feed(p[:n], maxResult(e.x.srv), e):
			e.ex.refuse(&mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Detail: tooLarge(e.x.srv)})
			e.end = io.ErrUnexpectedEOF
		case err != nil:
			e.end = err
			e.Finish(errors.Is(err, io.EOF), e) // of which the SDK takes the last event as if it were whole
		}
	}
	return e.Next(p), nil
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

func (e *events) OnLine([]byte) {}

func (e *events) OnEvent(event []byte) []byte {
	e.x.conn.progress.hearEvent(event)
	if e.x.ids == nil {
		return event
	}
	event, what := e.x.ids.RestoreEvent(event, e.ex.raw)
	switch {
	case what == rpc.Failed:
		e.ex.note(func(ex *exchange) {
			if resp := rpc.ResponseOf(rpc.DataOf(event)); resp != nil && resp.ID == rpc.IDOf(ex.raw) {
				ex.answer(resp)
			}
		})
	case what == rpc.NotAMessage && rpc.HasID(e.ex.raw):
		refusal := &mcpbridge.Error{Class: mcpbridge.Protocol, Sent: true, Detail: "an event of the answer is no JSON-RPC message", Status: http.StatusOK, Doubt: true}
		e.ex.refuse(refusal)
		event = rpc.WithData(event, rpc.Failure(e.ex.raw, 0, refusal.Detail))
	}
	return event
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
