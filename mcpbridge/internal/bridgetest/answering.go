// Package bridgetest has what the tests of several rooms of the bridge need.
package bridgetest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing/iotest"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
)

// SessionID is the id of the session that tests attach to.
const SessionID = "made-up-session-4711"

// Answering makes the response to a request. It is an http.RoundTripper.
type Answering func(req *http.Request) (*http.Response, error)

// RoundTrip answers a request.
func (f Answering) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

type lastCall struct{}

// WithLastCall returns a context in which id is that of the last call, for [Says].
func WithLastCall(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, lastCall{}, id)
}

// Says returns a response. %s in the body is replaced by the id of the request, or of the last
// call.
func Says(status int, kind, body string, headers ...string) Answering {
	return func(req *http.Request) (*http.Response, error) {
		last, _ := req.Context().Value(lastCall{}).(string)
		id := cmp.Or(string(rpc.Parse(rpc.BodyOf(req)).ID), last)
		data := []byte(strings.ReplaceAll(body, "%s", id))
		resp := &http.Response{
			Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(data)), ContentLength: int64(len(data)), Request: req,
		}
		if kind != "" {
			resp.Header.Set("Content-Type", kind)
		}
		for _, h := range headers {
			if name, value, ok := strings.Cut(h, ":"); ok {
				resp.Header.Set(name, strings.TrimSpace(value))
			}
		}
		return resp, nil
	}
}

// Then returns a response whose body ends with an error, or stays open if that is nil.
func Then(end error, how Answering) Answering {
	return func(req *http.Request) (*http.Response, error) {
		resp, err := how(req)
		ctx, closed := context.WithCancel(req.Context())
		after := iotest.ErrReader(end)
		if end == nil {
			after = open{ctx}
		}
		resp.Body = &body{io.MultiReader(resp.Body, after), closed}
		return resp, err
	}
}

// body is the body of a response. Its Close ends a Read, as that of net/http does.
type body struct {
	io.Reader
	closed func()
}

// Close closes the body.
func (b *body) Close() error {
	b.closed()
	return nil
}

// open is the rest of a stream that stays open.
type open struct{ context.Context }

func (o open) Read([]byte) (int, error) {
	<-o.Done()
	return 0, o.Err()
}

// Feed writes pieces of a body, a pause after each, and ends it then with an error, unless that is nil.
func Feed(body *io.PipeWriter, pieces []string, pause time.Duration, end error) {
	for _, piece := range pieces {
		io.WriteString(body, piece) //nolint:errcheck // nobody may read it to its end
		time.Sleep(pause)
	}
	if end != nil {
		body.CloseWithError(end)
	}
}

// Failure returns a JSON-RPC response that is an error.
func Failure(id, code, message string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"error":{"code":` + code + `,"message":"` + message + `"}}`
}
