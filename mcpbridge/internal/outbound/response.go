package outbound

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// The headers and media types of MCP over HTTP.
const (
	HeaderSession  = "Mcp-Session-Id"
	HeaderProtocol = "Mcp-Protocol-Version"
	HeaderEvent    = "Last-Event-Id"

	TypeJSON = "application/json"
	TypeSSE  = "text/event-stream"
)

// ErrTooLarge is the error of [ReadBounded] for what exceeds the limit.
var ErrTooLarge = errors.New("too large")

// firstPart is how much of a body must have come before ReadBounded trusts its Content-Length.
const firstPart = 16 << 10

// ReadBounded reads all of a body, or fails with [ErrTooLarge] after limit bytes. If the length is
// known, it allocates at most one large buffer.
func ReadBounded(resp *http.Response, limit int) ([]byte, error) {
	return readBounded(resp, limit, false)
}

// ReadJSON is [ReadBounded] for a body that is a JSON value. After a whole value it does not matter how the body ends, and
// ReadJSON waits for that only for a [Pause].
func ReadJSON(resp *http.Response, limit int) ([]byte, error) {
	return readBounded(resp, limit, true)
}

func readBounded(resp *http.Response, limit int, isJSON bool) ([]byte, error) {
	if resp.ContentLength > int64(limit) {
		return nil, ErrTooLarge
	}
	known := resp.ContentLength + 1 // one more, to see the end
	data := make([]byte, 0, max(512, min(known, firstPart)))
	for {
		n, err := readOn(resp.Body, data, isJSON && mayBeWhole(data))
		data = data[:len(data)+n]
		switch {
		case len(data) > limit:
			return data[:limit], ErrTooLarge
		case errors.Is(err, io.EOF), err != nil && isJSON && isWhole(data):
			return data, nil
		case err != nil:
			return data, err
		case len(data) < cap(data):
		case int64(cap(data)) < known:
			data = append(make([]byte, 0, known), data...)
		default:
			data = slices.Grow(data, len(data))
		}
	}
}

// refusalLimit bounds how long the body of a refusal is read. The status is more important.
const refusalLimit = 2 * time.Second

// ReadRefusal reads the body of a refusal to its end, and closes it. It returns nil for a body that
// breaks off, because it may end in the middle of a secret, which would not be found.
func ReadRefusal(resp *http.Response) []byte {
	defer resp.Body.Close()
	defer time.AfterFunc(refusalLimit, func() { resp.Body.Close() }).Stop()
	body, err := ReadBounded(resp, wire.MaxRefusal)
	if err != nil {
		return nil
	}
	return body
}

// MediaType returns the media type of a response without parameters. It removes the parameters from the header if the SDK
// reads the type, because the SDK refuses malformed parameters.
func MediaType(resp *http.Response) string {
	value := resp.Header.Get("Content-Type")
	if value == TypeJSON || value == TypeSSE { // the usual values need no parsing
		return value
	}
	kind, _, _ := mime.ParseMediaType(value)
	if first, others, several := strings.Cut(value, ","); several && strings.TrimSpace(others) == first { // two programs have set it
		kind, _, _ = mime.ParseMediaType(first)
	}
	if kind == TypeJSON || kind == TypeSSE {
		resp.Header.Set("Content-Type", kind)
	}
	return kind
}

// buffer is a body in memory.
type buffer struct{ bytes.Reader }

// Close does nothing.
func (*buffer) Close() error { return nil }

// Body returns a body with these bytes.
func Body(data []byte) io.ReadCloser {
	b := new(buffer)
	b.Reset(data)
	return b
}

// Respond returns a response that takes the place of the server's for the SDK. from is the header that it begins
// with, or nothing.
func Respond(req *http.Request, status int, kind string, body []byte, from ...http.Header) *http.Response {
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
		Header: header, Body: Body(body), ContentLength: int64(len(body)), Request: req,
	}
}

// Drop returns a response with which the SDK fails one call, and decodes nothing: it treats the status 503 as temporary.
func Drop(req *http.Request) *http.Response {
	return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: noHeader, Body: http.NoBody, Request: req}
}

// noHeader is read-only.
var noHeader = http.Header{}
