package bridge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/mcpactor/mcpactor/internal/challenge"
	"github.com/mcpactor/mcpactor/internal/guard"
	"github.com/mcpactor/mcpactor/mcpbridge"

	"github.com/mcpactor/mcpactor/internal/bridge/redact"
)

const (
	// maxRecent bounds how many values of headers a session keeps to be blacked
	// out: one for each call in flight, should each request have one of its own.
	maxRecent = 64
	// maxRecentOfAll bounds how many the sessions of a server keep together: what
	// is refused may be about a session before, or about that of another.
	maxRecentOfAll = 256
)

// errFruitless is why credentials are not refreshed once more.
var errFruitless = errors.New("refreshing the credentials did not help")

// authorizer adds headers to the requests of one session: those of the configuration,
// the user and password of the URL, and the credentials of its key, which are refreshed
// when the server refuses them. It is the only place that adds any.
type authorizer struct {
	conn        *conn                 // whose it is: its cut ends what refreshes the credentials
	credentials mcpbridge.Credentials // nil: none
	seen        *discovery
	send        func(*http.Request) (*http.Response, error)
	secrets     func() []string // what no error text may have
	sent        redact.Recent   // by this session

	mu        sync.Mutex
	running   *refresh // nil: none is
	refreshes int      // that have ended
	failure   error    // of the last of them
	fruitless bool     // it failed, or its credentials were refused as well
	stepped   challenge.Requested
}

// backgroundKey marks the context of a request that no call waits for.
type backgroundKey struct{}

// refresh is one call of Refresh, for all who wait for it.
type refresh struct {
	done chan struct{}
	err  error // set before done is closed
}

// RoundTrip sends a request with its headers, and once more after a refusal of the
// credentials that are among them.
func (a *authorizer) RoundTrip(req *http.Request) (*http.Response, error) {
	if a.credentials == nil {
		return a.send(a.dress(req, nil))
	}
	signed, before, err := a.sign(req)
	if err != nil {
		return nil, err
	}
	resp, err := a.send(signed)
	if err != nil || !mayRefresh(req.Context()) || a.conn.second.Load() || !a.refused(signed, resp) {
		return resp, err
	}
	switch err := a.refresh(signed, resp, before); {
	case errors.Is(err, errFruitless):
		return resp, nil
	case err != nil:
		resp.Body.Close()
		return nil, err
	}
	resp.Body.Close()

	again := *req
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return nil, err
		}
	}
	if signed, _, err = a.sign(&again); err != nil {
		return nil, err
	}
	resp, err = a.send(signed)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		a.mu.Lock()
		a.fruitless = true
		a.mu.Unlock()
	}
	return resp, err
}

// sign returns a request with the credentials of now, and how many refreshes had
// ended before.
func (a *authorizer) sign(req *http.Request) (signed *http.Request, before int, err error) {
	a.mu.Lock()
	before = a.refreshes
	a.mu.Unlock()
	release := a.seen.hold()
	headers, err := guard.Call(func() (http.Header, error) { return a.credentials.Headers(bare{req.Context()}) })
	release()
	a.remember(headers)
	if !mayRefresh(req.Context()) {
		exchangeOf(req.Context()).note(func(ex *exchange) { ex.credentials = headers })
	}
	for name, values := range headers {
		for _, value := range values {
			if wrong := mcpbridge.CheckHeader(name, value); wrong != nil && err == nil {
				err = fmt.Errorf("the header %q %w", redact.Clean(name), wrong)
			}
		}
	}
	if err == nil {
		return a.dress(req, headers), before, nil
	}
	if req.Body != nil {
		req.Body.Close()
	}
	if ended := req.Context().Err(); ended != nil {
		return nil, 0, ended
	}
	return nil, 0, unauthorized("no credentials: ", err, a.secrets())
}

// dress returns a request with the headers of the configuration, and credentials.
// A request that gets none stays what it is.
func (a *authorizer) dress(req *http.Request, credentials http.Header) *http.Request {
	user := a.conn.at.url.User
	if len(a.conn.at.Headers) == 0 && len(credentials) == 0 && user == nil {
		return req
	}
	r := *req
	r.Header = req.Header.Clone()
	for name, value := range a.conn.at.Headers {
		r.Header.Set(name, value)
	}
	for name, values := range credentials {
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	if user != nil && r.Header.Get("Authorization") == "" {
		password, _ := user.Password()
		r.SetBasicAuth(user.Username(), password)
	}
	return &r
}

// refused reports whether a response refuses the credentials of its request, which
// can be sent again.
func (a *authorizer) refused(req *http.Request, resp *http.Response) bool {
	_, step := challenge.MissingScopes(resp)
	switch {
	case resp.StatusCode != http.StatusUnauthorized && !step:
		return false
	case req.Body != nil && req.Body != http.NoBody && req.GetBody == nil:
		return false
	}
	return true
}

// refresh gets new credentials, or waits until another request has got them, for a
// request that was sent after so many earlier refreshes. It returns [errFruitless]
// when that is not worth another attempt.
func (a *authorizer) refresh(req *http.Request, resp *http.Response, before int) error {
	undone(req)
	life := a.conn.cut
	if req.Method == http.MethodDelete {
		life = req.Context() // the session may have been cut before it is ended
	}
	if err := errors.Join(req.Context().Err(), life.Err()); err != nil {
		return err // who would wait for it has gone
	}
	r, err := a.join(life, req, resp, before)
	if r != nil {
		defer a.seen.hold()()
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
	return unauthorized(fmt.Sprintf("%d %s, and the credentials could not be refreshed: ",
		resp.StatusCode, http.StatusText(resp.StatusCode)), err, a.secrets())
}

// join returns the refresh to wait for, which it may have started; nil when what
// counts has ended already, by the error.
func (a *authorizer) join(life context.Context, req *http.Request, resp *http.Response, before int) (*refresh, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// A handshake asks once. What runs in the background does not ask again and
	// again, which may be asking a person, but waits for a call that does.
	patient := a.conn.isOpen() && req.Context().Value(backgroundKey{}) == nil
	scopes, step := challenge.MissingScopes(resp)
	switch {
	case a.refreshes > before:
		return nil, a.failure
	case a.running != nil:
		return a.running, nil
	case a.fruitless && !patient && a.failure != nil:
		return nil, a.failure
	case a.fruitless && !patient, step && !a.stepped.Add(scopes, ""):
		return nil, errFruitless
	}
	r := &refresh{done: make(chan struct{})}
	a.running = r
	shown := req.WithContext(bare{life})
	shown.Body, shown.GetBody = nil, nil
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxRefusal)) // it was read before
	refusal := *resp
	refusal.Body, refusal.Request = io.NopCloser(bytes.NewReader(body)), shown
	go a.run(r, shown, &refusal, step)
	return r, nil
}

// run calls Refresh for all who wait for it.
func (a *authorizer) run(r *refresh, req *http.Request, resp *http.Response, step bool) {
	r.err = errors.New("it did not return") // but called runtime.Goexit
	defer func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.running, a.failure, a.fruitless = nil, r.err, r.err != nil
		a.refreshes++
		if r.err == nil && !step { // a new login
			a.stepped = nil
		}
		close(r.done)
	}()
	_, r.err = guard.Call(func() (none struct{}, err error) {
		return none, a.credentials.Refresh(req.Context(), req, resp)
	})
}

// remember keeps the values of headers to be blacked out.
func (a *authorizer) remember(headers http.Header) {
	for _, values := range headers {
		for _, value := range values {
			if len(value) >= redact.MinSecret && a.sent.Add(value, maxRecent) {
				a.conn.at.sent.Add(value, maxRecentOfAll)
			}
		}
	}
}
