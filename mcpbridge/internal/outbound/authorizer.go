package outbound

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/challenge"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/header"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/redact"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/transport"
	"github.com/mcpactor/mcpactor/mcpbridge/internal/wire"
)

const (
	// maxRecent bounds how many header values a session remembers, to keep them out of error
	// texts: one for each call in flight, because each request may have its own.
	maxRecent = 64
	// maxRecentOfAll bounds how many values the sessions of a server remember together: a
	// refusal may quote the values of another session.
	maxRecentOfAll = 256
)

// errFruitless is the reason why credentials are not refreshed once more.
var errFruitless = errors.New("refreshing the credentials did not help")

// authorizer adds the credentials of the session's key to the requests of one session, and
// refreshes them when the server refuses them. No other code adds credentials.
type authorizer struct {
	client  *Client
	session *transport.Session
	sent    redact.Recent // credentials of this session
	proofs

	mu        sync.Mutex
	running   *refresh // nil while no refresh runs
	refreshes int      // how many have ended
	failure   error    // of the last of them
	fruitless bool     // the last refresh failed, or its credentials were refused as well
	scopes    challenge.Requested
}

// refresh is one call of Refresh, for all requests that wait for it.
type refresh struct {
	done chan struct{}
	err  error // set before done is closed
}

// RoundTrip sends a request with credentials. If the server refuses these, RoundTrip refreshes them, and sends the
// request once more.
func (a *authorizer) RoundTrip(req *http.Request) (*http.Response, error) {
	credentials, before, err := a.headers(req)
	if err != nil {
		return nil, err
	}
	resp, err := a.send(req, credentials)
	if err != nil || !wire.MayRefresh(req.Context()) || a.session.IsControl.Load() || !refusesCredentials(resp) {
		return resp, err
	}
	again := Again(req)
	if again == nil {
		return resp, nil
	}
	switch err := a.refresh(a.client.addHeaders(req, credentials.headers), resp, before); {
	case errors.Is(err, errFruitless):
		return resp, nil
	case err != nil:
		return nil, &notRefreshed{err, Respond(req, resp.StatusCode, "", ReadRefusal(resp), resp.Header)}
	}
	resp.Body.Close()
	if credentials, _, err = a.headers(again); err != nil {
		return nil, err
	}
	resp, err = a.send(again, credentials)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		a.mu.Lock()
		a.fruitless = true
		a.mu.Unlock()
	}
	return resp, err
}

// headers returns the current credentials for a request, and how many refreshes had ended before.
func (a *authorizer) headers(req *http.Request) (c credentials, before int, err error) {
	a.mu.Lock()
	before = a.refreshes
	a.mu.Unlock()
	release := a.session.Discovery.Hold()
	c, err = guard.Call(func() (credentials, error) {
		return credentialsOf(wire.WithoutValues(req.Context()), a.session.Credentials)
	})
	release()
	a.remember(c.headers)
	if !wire.MayRefresh(req.Context()) {
		wire.ExchangeOf(req.Context()).SentWith(c.headers)
	}
	for name, values := range c.headers {
		for _, value := range values {
			if wrong := header.Check(name, value); wrong != nil && err == nil {
				err = fmt.Errorf("the header %q %w", redact.Clean(name), wrong)
			}
		}
	}
	if err == nil {
		return c, before, nil
	}
	if req.Body != nil {
		req.Body.Close()
	}
	if ended := req.Context().Err(); ended != nil {
		return credentials{}, 0, ended
	}
	return credentials{}, 0, wire.Unauthorized("no credentials: ", err, a.next.Secrets())
}

// refusesCredentials reports whether a response refuses the credentials of its request.
func refusesCredentials(resp *http.Response) bool {
	_, lacksScopes := challenge.MissingScopes(resp)
	return lacksScopes || resp.StatusCode == http.StatusUnauthorized
}

// refresh gets new credentials for a request that got them after the given number of refreshes. If a refresh is under
// way, it waits for that. It returns [errFruitless] if no refresh can help.
func (a *authorizer) refresh(req *http.Request, resp *http.Response, before int) error {
	repeats(req)
	life := a.session.Cut
	if req.Method == http.MethodDelete {
		life = req.Context() // the session may have been cut before its DELETE
	}
	if err := errors.Join(req.Context().Err(), life.Err()); err != nil {
		return err // nobody waits for new credentials
	}
	r, err := a.join(life, req, resp, before)
	if r != nil {
		defer a.session.Discovery.Hold()()
		select {
		case <-r.done:
			err = r.err
		case <-req.Context().Done():
			return req.Context().Err()
		case <-life.Done():
			return life.Err()
		}
	}
	if err == nil || errors.Is(err, errFruitless) {
		return err
	}
	return wire.Unauthorized(fmt.Sprintf("%d %s, and the credentials could not be refreshed: ",
		resp.StatusCode, http.StatusText(resp.StatusCode)), err, a.next.Secrets())
}

// join returns the refresh to wait for. It starts one if need be. It returns nil and an error, or nil, if there is nothing to
// wait for.
func (a *authorizer) join(life context.Context, req *http.Request, resp *http.Response, before int) (*refresh, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// A refresh may ask a person. So a handshake refreshes once, and after a fruitless refresh only calls try
	// again, and not requests in the background.
	isPersistent := a.session.IsOpen.Load() && !wire.IsInBackground(req.Context())
	scopes, lacksScopes := challenge.MissingScopes(resp)
	switch {
	case a.refreshes > before:
		return nil, a.failure
	case a.running != nil:
		return a.running, nil
	case a.fruitless && !isPersistent && a.failure != nil:
		return nil, a.failure
	case a.fruitless && !isPersistent, lacksScopes && !a.scopes.Add(scopes, ""):
		return nil, errFruitless
	}
	r := &refresh{done: make(chan struct{})}
	a.running = r
	shown := req.WithContext(wire.ForCaller(life, req.Context()))
	shown.Body, shown.GetBody = nil, nil
	body, _ := io.ReadAll(io.LimitReader(resp.Body, wire.MaxRefusal)) // the body may break off
	resp.Body.Close()
	resp.Body = Body(body)
	refusal := *resp
	refusal.Body, refusal.Request = io.NopCloser(bytes.NewReader(body)), shown
	go a.run(r, shown, &refusal, lacksScopes)
	return r, nil
}

// run calls Refresh for all requests that wait for it.
func (a *authorizer) run(r *refresh, req *http.Request, resp *http.Response, lacksScopes bool) {
	r.err = errors.New("it did not return") // if it calls runtime.Goexit
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.running, a.failure, a.fruitless = nil, r.err, r.err != nil
		a.refreshes++
		if r.err == nil && !lacksScopes { // a new login
			a.scopes = nil
		}
		close(r.done)
	}()
	_, r.err = guard.Call(func() (none struct{}, err error) {
		return none, a.session.Credentials.Refresh(req.Context(), req, resp)
	})
}

// remember keeps the values of headers out of error texts.
func (a *authorizer) remember(headers http.Header) {
	for _, values := range headers {
		for _, value := range values {
			if len(value) >= redact.MinSecret && a.sent.Add(value, maxRecent) {
				a.client.sent.Add(value, maxRecentOfAll)
			}
		}
	}
}
