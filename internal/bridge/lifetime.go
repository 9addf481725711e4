package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/mcpactor/mcpactor/mcpbridge"

	"github.com/mcpactor/mcpactor/internal/bridge/redact"
	"github.com/mcpactor/mcpactor/internal/bridge/rpc"
)

// initialize sends the request that opens a session. When nobody waits for its
// answer any more, it goes on for a moment: the session that it may have opened has
// to be ended, and only the answer has its id.
func (x *exchanger) initialize(req *http.Request) (*http.Response, error) {
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(req.Context()))
	var resp *http.Response
	var err error
	answered, abandoned := make(chan struct{}), make(chan struct{})
	x.mu.Lock()
	x.initialized = answered
	x.mu.Unlock()
	go func() {
		defer func() {
			x.mu.Lock()
			x.initialized = nil
			x.mu.Unlock()
			close(answered)
		}()
		resp, err = x.send(req.WithContext(ctx)) //nolint:bodyclose // who takes it closes it
		if err != nil {
			return
		}
		if id := resp.Header.Get(headerSession); id != "" {
			x.mu.Lock()
			x.sessionID, x.born = id, time.Now()
			x.mu.Unlock()
			x.fresh.Store(true)
		}
		if isClosed(abandoned) {
			resp.Body.Close()
		}
	}()
	select {
	case <-answered:
		context.AfterFunc(req.Context(), cancel)
		return resp, err
	case <-req.Context().Done():
		close(abandoned)
		time.AfterFunc(dialCleanup/2, cancel)
		return nil, req.Context().Err()
	}
}

// settled waits until it is known whether a session was opened, or until ctx ends.
func (x *exchanger) settled(ctx context.Context) {
	x.mu.Lock()
	answered := x.initialized
	x.mu.Unlock()
	if answered == nil {
		return
	}
	select {
	case <-answered:
	case <-ctx.Done():
	}
}

// attach answers the handshake of a session that is to be attached to, or
// returns nil.
func (x *exchanger) attach(req *http.Request, msg rpc.Envelope) *http.Response {
	switch {
	case x.resume == nil:
		return nil
	case msg.Method == rpc.MethodInitialized:
		return answer(req, http.StatusAccepted, "", nil)
	case msg.Method != rpc.MethodInitialize:
		return nil
	}
	result, err := json.Marshal(x.resume.Server)
	if err != nil {
		return nil
	}
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": msg.ID, "result": json.RawMessage(result)})
	resp := answer(req, http.StatusOK, typeJSON, body)
	resp.Header.Set(headerSession, x.resume.SessionID)
	return resp
}

// expire notes that the server does not know the session any more, and tells
// of it once.
func (x *exchanger) expire(e *mcpbridge.Error) {
	x.mu.Lock()
	first := !x.expired
	young := time.Since(x.born) < youngFor
	x.expired, x.deleted = true, true
	x.mu.Unlock()
	switch {
	case !first || x.sse:
	case e.Status == 0: // a control has found it out
		go x.endQuietly(1)
	case young:
		go x.endQuietly(quietAttempts)
	}
	if first && x.conn.isOpen() {
		x.conn.tellDown(e)
	}
}

// hasExpired reports whether the server does not know the session any more.
func (x *exchanger) hasExpired() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.expired
}

const (
	// youngFor is the age up to which a session that expires may be known to another of
	// the server's instances.
	youngFor = 30 * time.Second
	// quietAttempts is how often such a session is tried to be ended.
	quietAttempts = 3
	quietLimit    = 5 * time.Second
)

// endQuietly ends a session on the server that counts as expired. Nobody waits for it, and
// it does not matter whether it succeeds: what is unknown to one instance of a server may
// still be known to another.
func (x *exchanger) endQuietly(attempts int) {
	ctx, cancel := context.WithTimeout(withoutRefresh(context.Background()), quietLimit)
	defer cancel()
	for range attempts {
		_, resp, err := x.sendDelete(ctx)
		if err != nil {
			return
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusNotFound {
			return
		}
	}
}

// delete ends the session on the server. It may be called again when it failed.
func (x *exchanger) delete(ctx context.Context) error {
	x.mu.Lock()
	done := x.deleted || x.sessionID == ""
	x.mu.Unlock()
	if done || x.sse {
		return nil
	}
	req, resp, err := x.sendDelete(ctx)
	if err != nil {
		return errors.New("ending the session on the server: " + redact.Describe(err, x.secrets()...))
	}
	if ended, e := x.ended(req, resp); !ended {
		return errors.New("ending the session on the server: it answered " + e.Detail)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.deleted = true
	return nil
}

// sendDelete sends the request that ends the session.
func (x *exchanger) sendDelete(ctx context.Context) (*http.Request, *http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, x.conn.at.url.String(), nil)
	if err != nil {
		return nil, nil, err
	}
	x.ofSession(req)
	// net/http tries it again when it met a connection that was just being closed;
	// being empty, this is not sent.
	req.Header["Idempotency-Key"] = []string{}
	resp, err := x.send(req)
	return req, resp, err
}

// ended reports whether a session is over after this answer to its DELETE; if not, the
// DELETE may be sent again. The specification lets a server refuse: 405, and 404 for a
// session that is gone.
func (x *exchanger) ended(req *http.Request, resp *http.Response) (bool, *mcpbridge.Error) {
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		resp.Body.Close()
		return true, nil
	}
	e, _ := x.judge(req, resp, nil)
	switch resp.StatusCode {
	case http.StatusNotFound, http.StatusGone, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return true, nil
	case http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return false, e
	}
	isOther := resp.StatusCode >= 400 && resp.StatusCode < 500
	return isOther && x.unknown(req.Context(), resp.StatusCode, e.Code), e
}

// unknown reports whether it is the session's id that a server refuses, after it has
// refused a DELETE by a status that may as well be about something else. It does if it
// refuses a ping of the session likewise: with the same status, and the same JSON-RPC
// code if there was one. The example of the TypeScript SDK says 400 to any id that it
// does not know: in text to a DELETE, as JSON-RPC to a ping. What 401 and 403 are about
// shows a ping without a session: refused likewise, it is the credentials.
func (x *exchanger) unknown(ctx context.Context, status int, code int64) bool {
	said, again := x.ask(ctx, true)
	if said != status || code != 0 && again != code {
		return false
	}
	if status != http.StatusUnauthorized && status != http.StatusForbidden {
		return true
	}
	said, _ = x.ask(ctx, false)
	return said != 0 && said != status
}

// ask sends a ping, and returns how it was answered: its status, 0 for none, and the
// code of a refusal.
func (x *exchanger) ask(ctx context.Context, ofSession bool) (status int, code int64) {
	body := []byte(`{"jsonrpc":"2.0","id":"` + nonce() + `","method":"ping"}`)
	req, err := http.NewRequestWithContext(withoutRefresh(ctx), http.MethodPost, x.conn.at.url.String(), bytes.NewReader(body))
	if err != nil {
		return 0, 0
	}
	req.Header.Set("Content-Type", typeJSON)
	req.Header.Set("Accept", typeJSON+", "+typeSSE)
	if ofSession {
		x.ofSession(req)
	}
	resp, err := x.send(req)
	if err != nil {
		return 0, 0
	}
	if resp.StatusCode >= 200 && resp.StatusCode < 300 {
		resp.Body.Close() // which may be a stream
		return resp.StatusCode, 0
	}
	e, _ := x.judge(req, resp, nil)
	return resp.StatusCode, e.Code
}

// ofSession adds to a request of ours which session it is of.
func (x *exchanger) ofSession(req *http.Request) {
	x.mu.Lock()
	defer x.mu.Unlock()
	req.Header.Set(headerSession, x.sessionID)
	if x.protocol != "" {
		req.Header.Set(headerProtocol, x.protocol)
	}
}
