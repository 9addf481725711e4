package mcpbridge

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"

	"github.com/mcpactor/mcpactor/messages"
)

// Authenticator gives each key of a server its credentials, such as the tokens of
// the user that a scope stands for. Its method may be called from any goroutine.
type Authenticator interface {
	// Credentials returns what the requests of a key carry; nil is nothing. It is
	// called for each session that is dialed or attached to; ctx ends with the
	// attempt. An error is an unauthorized one, and fails the dial.
	Credentials(ctx context.Context, key messages.Key) (Credentials, error)
}

// AuthenticatorFunc is a function that is an [Authenticator]. Functions cannot be
// compared, so with one a server is never the same as before: when the servers are
// reloaded its sessions are replaced.
type AuthenticatorFunc func(ctx context.Context, key messages.Key) (Credentials, error)

// Credentials calls f.
func (f AuthenticatorFunc) Credentials(ctx context.Context, key messages.Key) (Credentials, error) {
	return f(ctx, key)
}

// Credentials are what the requests of one key carry: those to the origin of
// [Server.URL], and no others. Their methods may be called from any goroutine. What
// they return appears in no log, event or error text; the text of an error of theirs
// does, so it should have no secrets.
type Credentials interface {
	// Headers returns the headers of one request, such as Authorization. They go
	// before those of [Server.Headers], and are read-only once returned. It is
	// called for every request, so it should be quick; ctx ends with the request.
	// An error fails the request with unauthorized, and nothing is sent.
	Headers(ctx context.Context) (http.Header, error)
	// Refresh gets new credentials after the server refused those that req
	// carried: with 401, or with 403 and a challenge that says insufficient_scope.
	// After it has returned nil the request is sent once more, with what Headers
	// returns then; its second refusal is the caller's.
	//
	// Of the requests of one session that are refused at once only one calls
	// Refresh, and the others wait for it: each as long as it wants to. So ctx ends
	// with the session, and not with a call. Neither req, which has no body, nor
	// resp may be changed; the body of resp may be read, and need not be closed.
	//
	// For 403 it is called once per set of scopes that the server says are missing, until
	// a 401 has led to other credentials: further refusals are the caller's at once.
	Refresh(ctx context.Context, req *http.Request, resp *http.Response) error
}

// Identified is implemented by [Credentials] that know whose they are. See
// [Resume.Identity].
type Identified interface {
	// Identity returns what stays the same while tokens come and go, such as the id of
	// the user. It is called when a session is dialed or attached to, and must not
	// block. Empty is the same as not to have it.
	Identity() string
}

// identityOf returns whose credentials these are, as far as they know; else empty: then
// they are those of the key.
func identityOf(c Credentials) string {
	if known, ok := c.(Identified); ok {
		return known.Identity()
	}
	return ""
}

// checkAuth reports an authenticator that nobody has made as it has to be.
func checkAuth(a Authenticator) error {
	switch a := a.(type) {
	case AuthenticatorFunc:
		if a == nil {
			return errors.New("auth: is nil")
		}
	case *OAuthCredentials:
		if !a.made() {
			return fmt.Errorf("auth: %w", errNotMade)
		}
	}
	return nil
}

// unauthorized returns the error for credentials that cannot be had. A panic stays
// one.
func unauthorized(text string, err error, secrets []string) *Error {
	var bug *Error
	if errors.As(err, &bug) && bug.Class == Internal && bug.Err != nil {
		return &Error{Class: Internal, Detail: text + bug.said(secrets), Err: bug.Err}
	}
	return &Error{Class: Unauthorized, Detail: text + describe(err, secrets...), Err: err}
}

// guarded calls the user's code. A panic of it is an [*Error].
func guarded[T any](f func() (T, error)) (value T, err error) {
	defer recovered(&err)
	return f()
}

// credentials returns the credentials of a key.
func (at *endpoint) credentials(ctx context.Context, key messages.Key) (Credentials, error) {
	if at.Auth == nil {
		return nil, nil
	}
	c, err := guarded(func() (Credentials, error) { return at.Auth.Credentials(ctx, key) })
	switch {
	case err == nil:
		return c, nil
	case ctx.Err() != nil:
		return nil, AsDialError(ctx.Err())
	}
	return nil, unauthorized("no credentials: ", err, at.sent.secrets(at.secrets()))
}

// seed keeps fingerprints of credentials from being compared outside of the process.
var seed = maphash.MakeSeed()

// noCredentials is the fingerprint of credentials that could not be had.
const noCredentials = 0

// fingerprint stands for the headers that credentials have now. err is why they
// could not be had, or nil.
func fingerprint(ctx context.Context, c Credentials, err error) uint64 {
	var headers http.Header
	if err == nil && c != nil {
		headers, err = guarded(func() (http.Header, error) { return c.Headers(bare{ctx}) })
	}
	if err != nil {
		return noCredentials
	}
	var h maphash.Hash
	h.SetSeed(seed)
	headers.Write(&h) //nolint:errcheck // it takes everything, in an order of its own
	return h.Sum64() | 1
}

// bare is a context without values. Those of a call have the bridge told of its
// requests, and what the user's code sends is none of them.
type bare struct{ context.Context }

func (bare) Value(any) any { return nil }

// AfterFunc spares package context a goroutine that waits for the end.
func (b bare) AfterFunc(f func()) (stop func() bool) { return context.AfterFunc(b.Context, f) }
