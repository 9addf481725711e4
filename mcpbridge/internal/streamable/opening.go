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

// abandonedTimeout is how long an initialize continues after the handshake has ended.
const abandonedTimeout = 500 * time.Millisecond

// discardAttempts is how often the bridge tries to end a session that nobody will use: a front may refuse an attempt.
// discardPause is the time between two attempts.
const (
	discardAttempts = 3
	discardPause    = 50 * time.Millisecond
)

// initialize sends the request that opens a session. If the handshake ends before the answer, the request continues
// for abandonedTimeout: the server may open a session, which has to be ended, and only the answer has its id.
func (s *session) initialize(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(req.Context()))
	var resp *http.Response
	var err error
	answered, abandoned := make(chan struct{}), make(chan struct{})
	s.mu.Lock()
	s.opening = answered
	s.mu.Unlock()
	go func() {
		defer func() {
			s.mu.Lock()
			s.opening = nil
			s.mu.Unlock()
			close(answered)
		}()
		resp, err = s.out.Send(req.WithContext(ctx)) //nolint:bodyclose // the caller closes it
		if err != nil {
			return
		}
		s.opened(resp)
		select {
		case <-abandoned:
			resp.Body.Close()
		default:
		}
	}()
	select {
	case <-answered:
		context.AfterFunc(req.Context(), cancel)
		return resp, err
	case <-req.Context().Done():
		close(abandoned)
		time.AfterFunc(abandonedTimeout, cancel)
		return nil, req.Context().Err()
	}
}

// Discard ends the session that a handshake may have opened, unless it was to be resumed. First it waits for the answer to
// an initialize that is under way.
func (s *session) Discard(ctx context.Context) {
	if s.Resume != nil {
		return
	}
	s.mu.Lock()
	opening := s.opening
	s.mu.Unlock()
	if opening != nil {
		select {
		case <-opening:
		case <-ctx.Done():
		}
	}
	for n := range discardAttempts { // the caller reports why the session is discarded
		if n > 0 && !wire.Sleep(ctx, discardPause) || s.EndSession(ctx) == nil {
			return
		}
	}
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
	resp.Body.Close()
	if !wire.IsMissing(resp.StatusCode) {
		return nil
	}
	known, err := s.untilKnown(req)
	if known != nil {
		known.Body.Close()
	}
	return err
}
