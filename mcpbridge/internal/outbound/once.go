package outbound

import (
	"errors"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// once is the http.RoundTripper that hands requests to the transport of a client. It sends each
// POST once, and notes in the exchange of the request whether it was sent.
//
// A request that was handed over counts as sent, unless there is proof of the contrary. There are four proofs:
//
//   - The transport asked for a connection and got none, as package httptrace reports.
//   - An HTTP/2 server said that it did not process the request: REFUSED_STREAM, or a
//     GOAWAY below its stream (RFC 9113, section 8.7).
//   - net/http chose a connection of HTTP/2 that was closed before it took the request.
//   - net/http chose a connection of HTTP/1 that the server had ended while it was idle. A server that ends it later may have
//     read the request, also if it resets the connection.
//
// Over HTTP/2, net/http sends a request again by itself in these cases, and before Go 1.27 also after a
// PROTOCOL_ERROR, when the request may have run (golang/go#47635). It can do so only if it can read the body
// again: therefore it gets a request without GetBody. Over HTTP/1 it sends a POST again only if no byte of it was
// written, which remains allowed.
type once struct {
	base http.RoundTripper
	// plain is true for the bridge's own transport and a URL without TLS: that is HTTP/1.
	plain bool
	// known is true for a transport of net/http, whose use of the body is known.
	known bool
	// http1 is true after an answer over HTTP/1.
	http1 atomic.Bool
}

func newOnce(base http.RoundTripper, plain bool) *once {
	_, known := base.(*http.Transport)
	return &once{base: base, plain: plain && known, known: known}
}

// errSentOnce is the error of a body that net/http must not read again.
var errSentOnce = errors.New("the request was sent, and is not sent again")

// RoundTrip sends a request.
func (o *once) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method != http.MethodPost {
		return o.base.RoundTrip(req)
	}
	ex := wire.ExchangeOf(req.Context())
	ex.Sent(o.known)
	resp, err := o.base.RoundTrip(o.withoutBodyAgain(req, ex))
	if err != nil {
		ex.NotSent(unprocessed.MatchString(err.Error()) || o.known && neverBegun(err.Error()))
		return nil, err
	}
	if http1 := resp.ProtoMajor == 1; http1 != o.http1.Load() {
		o.http1.Store(http1)
	}
	return resp, nil
}

// unprocessed finds the errors of net/http that mean that an HTTP/2 server did not process a request. They contain no text
// of the server.
var unprocessed = regexp.MustCompile(`^http2: Transport: cannot retry err \[(?:` +
	`http2: Transport received Server's graceful shutdown GOAWAY|` +
	`stream error: stream ID \d+; REFUSED_STREAM(?:; received from peer)?)\] after Request\.Body was written`)

// neverBegun reports whether an error of net/http means that it has written nothing of a request. These errors contain no text of
// the server.
func neverBegun(text string) bool {
	return text == notRewound || text == closedIdle || strings.HasPrefix(text, brokenIdle)
}

const (
	// notRewound is the error for a request that was not sent, because the HTTP/2 connection was closed, and that cannot be sent
	// over another one without reading the body again.
	notRewound = "net/http: cannot rewind body after connection loss"
	// closedIdle and brokenIdle are the errors for a request that has got a connection of HTTP/1 whose end was read before
	// the request began. net/http sends it over another one only if it is idempotent.
	closedIdle = "http: server closed idle connection"
	brokenIdle = "readLoopPeekFailLocked: "
)

// withoutBodyAgain returns a request whose body the transport cannot read again, unless
// that is safe.
func (o *once) withoutBodyAgain(req *http.Request, ex *wire.Exchange) *http.Request {
	if o.plain || req.GetBody == nil {
		return req
	}
	r := *req
	r.GetBody = nil
	if o.known && o.http1.Load() {
		r.GetBody = func() (io.ReadCloser, error) {
			if ex.OverHTTP2() {
				return nil, errSentOnce
			}
			return req.GetBody()
		}
	}
	return &r
}
