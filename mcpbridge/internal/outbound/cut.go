package outbound

import (
	"context"
	"io"
	"net/http"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// UntilCut sends a request with do. The request and its response end when the session is cut.
func UntilCut(cut context.Context, req *http.Request, do func(*http.Request) (*http.Response, error)) (*http.Response, error) {
	if over := wire.ExchangeOf(req.Context()).Over; over != nil && over == req.Context().Done() {
		return do(req) // its context already ends with the session
	}
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(cut, cancel)
	resp, err := do(req.WithContext(ctx))
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	resp.Body = CancelBody(resp.Body, func() { stop(); cancel() })
	return resp, nil
}

// CancelBody returns a body that calls cancel when it is closed.
func CancelBody(body io.ReadCloser, cancel context.CancelFunc) io.ReadCloser {
	return &cancelBody{body, cancel}
}

type cancelBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (b *cancelBody) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}

// NoRedirects returns an HTTP client for the SDK that leaves redirects to its transport.
func NoRedirects(transport http.RoundTripper) *http.Client {
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
