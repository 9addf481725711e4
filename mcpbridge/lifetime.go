package mcpbridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
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
			x.sessionID = id
			x.mu.Unlock()
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
func (x *exchanger) attach(req *http.Request, msg rpcEnvelope) *http.Response {
	switch {
	case x.resume == nil:
		return nil
	case msg.Method == methodInitialized:
		return answer(req, http.StatusAccepted, "", nil)
	case msg.Method != methodInitialize:
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
func (x *exchanger) expire(e *Error) {
	x.mu.Lock()
	first := !x.expired
	x.expired, x.deleted = true, true
	x.mu.Unlock()
	if first && x.conn.isOpen() {
		x.down(e)
	}
}

// delete ends the session on the server. It may be called again when it failed.
func (x *exchanger) delete(ctx context.Context) error {
	x.mu.Lock()
	id, protocol, done := x.sessionID, x.protocol, x.deleted
	x.mu.Unlock()
	if done || id == "" || x.sse {
		return nil
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, x.conn.at.url.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set(headerSession, id)
	// net/http tries it again when it met a connection that was just being closed;
	// being empty, this is not sent.
	req.Header["Idempotency-Key"] = []string{}
	if protocol != "" {
		req.Header.Set(headerProtocol, protocol)
	}
	resp, err := x.send(req)
	if err != nil {
		return errors.New("ending the session on the server: " + describe(err, x.secrets()...))
	}
	resp.Body.Close()
	// The specification lets a server refuse: 405, and 404 for one that is gone.
	if resp.StatusCode >= 500 && resp.StatusCode != http.StatusNotImplemented {
		return fmt.Errorf("ending the session on the server: it answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.deleted = true
	return nil
}
