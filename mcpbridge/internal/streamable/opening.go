package streamable

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/rpc"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

// abandonedTimeout is how long a handshake that was given up waits for the answer to its initialize.
const abandonedTimeout = 500 * time.Millisecond

// discardAttempts is how often the bridge tries to end a session that nobody will use: a front may refuse an attempt.
// discardPause is the time between two attempts.
const (
	discardAttempts = 3
	discardPause    = 50 * time.Millisecond
)

// initialize sends the request that opens a session. If the handshake ends before the answer, a request that may have
// reached the server continues until the connect timeout is over: the server may open a session, which has to be ended,
// and only the answer has its id.
func (s *session) initialize(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	began, ex := time.Now(), wire.ExchangeOf(req.Context())
	ctx, cancel := context.WithCancel(context.WithoutCancel(req.Context()))
	var resp *http.Response
	var err error
	answered := make(chan struct{})
	s.mu.Lock()
	s.opening = answered
	s.mu.Unlock()
	go func() {
		resp, err = s.out.Send(req.WithContext(ctx)) //nolint:bodyclose // the caller closes it
		if err == nil {
			s.opened(resp)
		}
		s.mu.Lock()
		s.opening, s.unknown = nil, err != nil && ctx.Err() != nil && ex.MayHaveReached()
		s.mu.Unlock()
		close(answered)
	}()
	select {
	case <-answered:
		context.AfterFunc(req.Context(), cancel)
		return resp, err
	case <-req.Context().Done():
	}
	time.AfterFunc(abandonedTimeout, func() { // not at once: a connection may just be there
		if !ex.MayHaveReached() {
			cancel()
		}
	})
	time.AfterFunc(max(abandonedTimeout, s.ConnectTimeout-time.Since(began)), cancel)
	go func() {
		defer context.AfterFunc(s.Life, cancel)()
		if <-answered; err == nil {
			resp.Body.Close()
			ctx, cancel := context.WithTimeout(wire.WithoutRefresh(s.Life), quietTimeout)
			defer cancel()
			s.EndSession(ctx) //nolint:errcheck // Discard returns the error
		}
	}()
	return nil, req.Context().Err()
}

// Discard ends the session that a handshake may have opened, unless it was to be resumed. If the answer to an initialize is
// awaited for too long, or the session cannot be ended, Discard returns an error, and EndSession may be called later.
func (s *session) Discard(ctx context.Context) error {
	if s.Resume != nil {
		return nil
	}
	opening, cancel := context.WithTimeout(ctx, abandonedTimeout)
	defer cancel()
	err := s.awaitOpening(opening)
	if err != nil {
		return err
	}
	for n := range discardAttempts {
		if n > 0 && !wire.Sleep(ctx, discardPause) {
			break
		}
		if err = s.EndSession(ctx); err == nil {
			break
		}
	}
	return err
}

// attach answers the handshake of a session that is to be resumed, and sends nothing. It returns nil for other
// messages.
func (s *session) attach(m outbound.Message) *http.Response {
	switch {
	case s.Resume == nil:
		return nil
	case m.Method == rpc.MethodInitialized:
		return outbound.Respond(m.Request, http.StatusAccepted, "", nil)
	case m.Method != rpc.MethodInitialize:
		return nil
	}
	result, err := json.Marshal(s.Resume.Server)
	if err != nil {
		return nil
	}
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": m.ID, "result": json.RawMessage(result)})
	resp := outbound.Respond(m.Request, http.StatusOK, outbound.TypeJSON, body)
	resp.Header.Set(outbound.HeaderSession, s.Resume.SessionID)
	return resp
}

// initialized sends the notification that ends the handshake, and repeats it while the server does not know the session
// yet.
func (s *session) initialized(req *http.Request) error {
	resp, err := s.out.Send(req)
	if err != nil {
		return err
	}
	if wire.IsMissing(resp.StatusCode) {
		resp.Body.Close()
		if resp, err = s.untilKnown(req); resp == nil {
			return err
		}
	}
	s.noteResponse(req, resp)
	return resp.Body.Close()
}
