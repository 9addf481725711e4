package streamable

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// answeredLater answers a call of the SDK that the server has answered with 202. The answer is a stream, which lasts
// until the response has come on any stream of the session.
func (s *session) answeredLater(m outbound.Message) *http.Response {
	s.awaited.await(m.Exchange, false)
	var early io.Reader = strings.NewReader("")
	if data := s.awaited.takeEarly(string(m.ID)); data != nil {
		early = io.MultiReader(strings.NewReader("data: "), bytes.NewReader(bytes.ReplaceAll(data, []byte("\n"), []byte("\ndata: "))), strings.NewReader("\n\n"))
	}
	body := &answerStream{ReadCloser: &extraStream{s: s, ex: m.Exchange, ctx: m.Request.Context(), early: early}, s: s, ex: m.Exchange, extra: true}
	return &http.Response{StatusCode: http.StatusOK, Header: streamHeader, Body: body, ContentLength: -1, Request: m.Request}
}

// extraStream waits while the session has another stream. If there is none, it opens one. If the server
// refuses that, the response cannot come.
type extraStream struct {
	s     *session
	ex    *wire.Exchange
	ctx   context.Context
	early io.Reader     // the response, if it came before the 202
	body  io.ReadCloser // of the stream that it has opened; nil while it waits

	released sync.Once // the stream may be closed twice
}

// Read reads the stream.
func (x *extraStream) Read(p []byte) (int, error) {
	if n, _ := x.early.Read(p); n > 0 {
		return n, nil
	}
	for x.body == nil {
		ended := x.s.awaited.claim()
		if ended == nil {
			if err := x.open(); err != nil {
				x.s.awaited.release()
				return 0, err
			}
			break
		}
		select {
		case <-ended:
		case <-x.ctx.Done():
			return 0, x.ctx.Err()
		}
	}
	return x.body.Read(p)
}

// open opens the stream.
func (x *extraStream) open() error {
	req, err := http.NewRequestWithContext(x.ctx, http.MethodGet, x.s.client.URL.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", outbound.TypeSSE)
	if x.s.SessionID() != "" {
		x.s.identify(req)
	}
	resp, err := x.s.out.Send(req) //nolint:bodyclose // it is x.body, or judge reads it to its end
	if err != nil {
		return err
	}
	x.s.noteResponse(req, resp)
	if resp.StatusCode == http.StatusOK && outbound.MediaType(resp) == outbound.TypeSSE {
		x.body = resp.Body
		return nil
	}
	e, _ := x.s.judge(req, resp, nil)
	x.ex.Refused(&mcpbridge.Error{
		Class: mcpbridge.Protocol, Sent: true, Status: http.StatusAccepted,
		Detail: redact.Clean("the server has answered 202 without a response, and there is no stream on which the response can come: "+e.Detail, x.s.Secrets()...),
	})
	return errNoStream
}

var errNoStream = errors.New("there is no stream")

// Close ends the stream.
func (x *extraStream) Close() error {
	if x.body == nil {
		return nil
	}
	x.released.Do(x.s.awaited.release)
	return x.body.Close()
}
