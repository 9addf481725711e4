package streamable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/mcpactor/mcpactor/internal/dial"
	"github.com/mcpactor/mcpactor/mcpbridge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/outbound"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

const (
	// youngAge is the age up to which an expired session is ended on the server nevertheless: another instance of
	// the server may know it.
	youngAge = 30 * time.Second
	// quietAttempts is how often the bridge tries to end such a session, and quietTimeout bounds all attempts.
	quietAttempts = 3
	quietTimeout  = 5 * time.Second
	// quietFutile is how many such sessions in a row must be unknown to all instances before the bridge stops trying.
	// Then the server has one instance, or its instances share their sessions.
	quietFutile = 5
)

// errOpening is why a session cannot be ended yet: its id is not known.
var errOpening = fmt.Errorf("%w yet, and may open a session", dial.ErrOpening)

// Expire notes that the session has expired, and reports it once.
func (s *session) Expire(e *mcpbridge.Error) {
	s.mu.Lock()
	first := s.expiry == nil
	young := time.Since(s.born) < youngAge
	if s.ended = true; first {
		s.expiry = e
	}
	s.mu.Unlock()
	switch {
	case !first:
		return
	case !s.leave(): // a DELETE would end another session with the same id
	case e.Status == 0: // a control has shown it
		go s.endQuietly(1)
	case young && s.habits.forgets.Load() < quietFutile:
		go s.endQuietly(quietAttempts)
	}
	if s.IsOpen.Load() {
		s.Watcher.Expired(e)
	}
	for _, ex := range s.awaited.broken() {
		s.brokeOff(ex)
	}
}

// brokeOff notes that a stream ended before it brought the response of an exchange. If the session has expired, the
// stream cannot be resumed, and the call ends. Calls whose streams are open continue.
func (s *session) brokeOff(ex *wire.Exchange) {
	if !s.HasExpired() {
		s.awaited.await(ex, true)
		if !s.HasExpired() {
			return
		}
	}
	ex.BrokeOff(s.lostToExpiry())
	if ex.Cancel != nil {
		ex.Cancel()
	}
}

// HasExpired reports whether the session has expired.
func (s *session) HasExpired() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.expiry != nil
}

// lostToExpiry returns the error of a call whose answer broke off, and whose session has expired. It is the same wherever both
// are noticed.
func (s *session) lostToExpiry() *mcpbridge.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &mcpbridge.Error{Session: mcpbridge.Gone, Detail: "its answer broke off, and the session expired: " + s.expiry.Detail}
}

// EndQuietly ends the session on the server with one attempt.
func (s *session) EndQuietly() { s.endQuietly(1) }

// endQuietly ends an expired session on the server. A session that is unknown to one instance of a server may be known
// to another. Nobody waits for the result.
func (s *session) endQuietly(attempts int) {
	if s.SessionID() == "" {
		return // the DELETE would end any session without an id, such as the next one
	}
	ctx, cancel := context.WithTimeout(wire.WithoutRefresh(context.Background()), quietTimeout)
	defer cancel()
	for range attempts {
		if !s.leave() {
			return // another session has the same id
		}
		_, resp, err := s.sendDelete(ctx)
		if err != nil {
			return
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			s.habits.forgets.Store(0)
			return
		}
	}
	s.habits.forgets.Add(1)
}

// EndSession ends the session on the server, unless others have its id. It waits for the answer to an initialize that is
// under way. It may be called again if it failed, and by several goroutines at once: that of a dial that was given up, and one
// that closes the session.
func (s *session) EndSession(ctx context.Context) error {
	if err := s.awaitOpening(ctx); err != nil {
		return err
	}
	select {
	case s.ending <- struct{}{}:
		defer func() { <-s.ending }()
	case <-ctx.Done():
		return errors.New("ending the session on the server: " + ctx.Err().Error())
	}
	s.mu.Lock()
	done := s.ended || s.id == ""
	s.mu.Unlock()
	if done || !s.leave() {
		return nil
	}
	req, resp, err := s.sendDelete(ctx)
	if err != nil {
		return errors.New("ending the session on the server: " + redact.Describe(err, s.Secrets()...))
	}
	if over, e := s.isOver(req, resp); !over {
		return errors.New("ending the session on the server: it answered " + e.Detail)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	return nil
}

// awaitOpening waits until it is known whether the server has opened a session, or returns an error if ctx ends before.
func (s *session) awaitOpening(ctx context.Context) error {
	s.mu.Lock()
	opening := s.opening
	s.mu.Unlock()
	if opening != nil {
		select {
		case <-opening:
		case <-ctx.Done():
			return errOpening
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unknown {
		return dial.ErrUnanswered
	}
	return nil
}

// sendDelete sends the request that ends the session.
func (s *session) sendDelete(ctx context.Context) (*http.Request, *http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, s.client.URL.String(), nil)
	if err != nil {
		return nil, nil, err
	}
	s.identify(req)
	// With this header net/http sends the request again if it met a connection that was just being
	// closed. The header is empty, so that it is not sent.
	req.Header["Idempotency-Key"] = []string{}
	resp, err := s.out.Send(req)
	return req, resp, err
}

// isOver reports whether a session is over after this answer to its DELETE. If not, the
// DELETE may be sent again. The specification allows a server to answer 405, and 404 for a
// session that has expired.
func (s *session) isOver(req *http.Request, resp *http.Response) (bool, *mcpbridge.Error) {
	if is2xx(resp) {
		resp.Body.Close()
		return true, nil
	}
	e, _ := s.judge(req, resp, nil)
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusGone, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true, nil
	case http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false, e
	}
	isOther := resp.StatusCode >= 400 && resp.StatusCode < 500
	return isOther && s.isUnknown(req.Context(), resp.StatusCode, e.Code), e
}

// isUnknown reports whether a server that refused a DELETE with an ambiguous status refuses the id of the session. It does
// if it refuses a ping of the session alike: with the same status, and the same JSON-RPC code if there was one. The
// example of the TypeScript SDK answers 400 to any id that it does not know: with text to a DELETE, and with JSON-RPC
// to a ping. After 401 and 403 a ping without a session decides: if it is refused alike, the refusal is about the
// credentials.
func (s *session) isUnknown(ctx context.Context, status int, code int64) bool {
	answer, again := s.ping(ctx, true)
	if answer != status || code != 0 && again != code {
		return false
	}
	if status != http.StatusUnauthorized && status != http.StatusForbidden {
		return true
	}
	answer, _ = s.ping(ctx, false)
	return answer != 0 && answer != status
}

// ping sends a ping without the SDK. It returns the status of the answer, or 0 without an answer, and the code of a
// refusal.
func (s *session) ping(ctx context.Context, ofSession bool) (status int, code int64) {
	body := []byte(`{"jsonrpc":"2.0","id":"` + wire.Nonce() + `","method":"ping"}`)
	req, err := http.NewRequestWithContext(wire.WithoutRefresh(ctx), http.MethodPost, s.client.URL.String(), bytes.NewReader(body))
	if err != nil {
		return 0, 0
	}
	req.Header.Set("Content-Type", outbound.TypeJSON)
	req.Header.Set("Accept", outbound.TypeJSON+", "+outbound.TypeSSE)
	if ofSession {
		s.identify(req)
	}
	resp, err := s.out.Send(req)
	if err != nil {
		return 0, 0
	}
	if is2xx(resp) {
		resp.Body.Close() // which may be a stream
		return resp.StatusCode, 0
	}
	e, _ := s.judge(req, resp, nil)
	return resp.StatusCode, e.Code
}
